"""Plans: what the control loops of a cluster would do after a change.

::

    rehearsal     rebuilds a cluster under virtual time, applies the change, lets time pass      (the machine)
    apply         the steps of a change, done as kubectl does them
    recording     every write with its actor, every round with its causes
    outcome       what did not converge and why, and the capacity that is missing
    timeline      entries from writes and rounds, and which of them happen without the change    (pure from here on)
    change        the steps, from files and the words of a command line
    assumptions   what the cluster cannot tell: how long containers take, which images are missing, the load
    model         the values of a report
    render        the report as text, Markdown or a document
"""
