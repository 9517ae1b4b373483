"""What a run says in the end.

estimate  log Z, its error bar and the posterior, from either model
warnings  what is doubtful about them, and what is worth a note
"""

__all__: list[str] = []
