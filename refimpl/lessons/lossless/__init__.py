"""Is speculative, overlapped decoding lossless? Random loads under adversarial orders, judged by an oracle of its own.

``models`` makes a tiny target whose next token hangs on all of its context, and drafts that guess it about every other
time. ``load`` draws requests that come, go and are aborted at random turns; ``play`` runs them on a scheduler;
``oracle`` checks every token that came out. ``campaign`` does it for all workers, options and seeds.
"""
