"""One file for each peer: ``PEER``, its entry, and ``run(task, **variant)``, the call that its own pages suggest."""
