"""The figures that stand at the end of a test session."""

from dataclasses import dataclass


@dataclass
class Summary:
    """How much was made to go wrong, and how much of it was survived or caught."""

    faults: int = 0
    survived: int = 0
    """Faults after which the end was as it must be."""
    states: int = 0
    """States of the model that were visited."""
    mutants: int = 0
    caught: int = 0
    """Mutants that the search has noticed."""

    def __str__(self) -> str:
        figures = []
        if self.faults:
            figures.append(f"{self.faults} faults, {self.survived} survived")
        if self.states:
            figures.append(f"{self.states} states, {self.caught} of {self.mutants} mutants caught")
        return "; ".join(figures)
