"""What a run says in the end.

estimate     log Z, its error bar and the posterior, from either model
density      the posterior's density by the surrogates, for the result
diagnostics  slices of the models and their predictions at the check points, for pictures
warnings     what is doubtful about them, and what is worth a note
"""

__all__: list[str] = []
