"""Bridges between wsabi and other packages, each an extra of the same name, loaded when it is first used.

arviz, pandas, anesthetic, getdist    a result in the form that these packages read, as methods of ``Result``
pymc, bilby, umbridge, stan, jax, sklearn
                                      a model of theirs as a :class:`wsabi.Model`: ``wsabi.from_pymc`` and so on
prior_transform                       what dynesty and UltraNest take, as a :class:`wsabi.Model`
bilby_sampler                         the class by which ``bilby.run_sampler(..., sampler="wsabi")`` runs wsabi
extras, draws                         how another package is loaded; draws of a posterior in chains and by variable
"""
