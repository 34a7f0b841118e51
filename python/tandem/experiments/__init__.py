# python/tandem/experiments/__init__.py: published experiments, rebuilt: `tandem experiment`.
"""An experiment is a folder with an `experiment.toml`. Its points are commands, which run once and are kept; its comparisons say how far
their results are from what was published.

    definition   reads and checks `experiment.toml`
    points       runs commands side by side, and keeps what they measured
    comparisons  ratios, orders and best values, beside published ones; the sentence
    page         table, picture, and the page of all experiments
    command      `tandem experiment`
"""
