"""The writer's real code under every order of its Storage calls: schedules, faults, laws and mutants.

lakeview's own DeltaTable and IcebergTable run here, no model of them; the layout of a scenario says which (`worlds`).
A writer is a deterministic function of the replies that its Storage calls get (identifiers, time and waiting are the
simulation's), so that each of its histories has to be run once, however many schedules share it: `writers.Program`
holds them as a tree. `explore` walks the graph of states (files of the store, place of each writer in its tree, faults
left), which is every order of calls.

    python -m tests.simulation search --seconds 60          the longer search: three writers, several faults
    python -m tests.simulation replay SCHEDULE              one schedule, told step by step
"""
