"""The state machine: whatever users, models, servers and commands do, in any order, the invariants hold."""

from collections.abc import Callable

import pytest
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from bantam.core.base.settings import Config
from bantam.core.effects import CallModel, RunShell, Sleep
from tests import world
from tests.invariants import CHECKS
from tests.servers import Dice, pick
from tests.strategies import tapes
from tests.world import World

pytestmark = pytest.mark.core
Deed = Callable[[Dice], None]


class Life(RuleBasedStateMachine):
    """A session from its first word to its last, and every fault on the way."""

    def __init__(self) -> None:
        super().__init__()
        self.world = World(Config(), CHECKS)
        self.is_sound = True

    @initialize(dice=tapes)
    def it_begins(self, dice: Dice) -> None:
        self.world = World(world.config(dice), CHECKS)
        self.world.says(dice)

    @rule(dice=tapes)
    def all_goes_well(self, dice: Dice) -> None:
        for _ in range(1 + dice.number(9)):
            self.see(lambda dice: self.world.act(dice, faults=3), dice)

    @rule(dice=tapes)
    def things_go_wrong(self, dice: Dice) -> None:
        for _ in range(1 + dice.number(2)):
            self.see(lambda dice: self.world.act(dice, faults=60), dice)

    @precondition(lambda self: self.world.waiting(CallModel) != ())
    @rule(dice=tapes)
    def the_model_wants_more(self, dice: Dice) -> None:
        self.see(lambda dice: self.world.model(dice, 0, hostile=True), dice)

    @precondition(lambda self: self.world.waiting(CallModel) != ())
    @rule(dice=tapes)
    def the_model_fails(self, dice: Dice) -> None:
        self.see(self.world.fails, dice)

    @precondition(lambda self: self.world.waiting(RunShell) != ())
    @rule(dice=tapes)
    def a_command_goes_on(self, dice: Dice) -> None:
        self.see(self.world.shell, dice)

    @precondition(lambda self: self.world.waiting(Sleep) != ())
    @rule(dice=tapes)
    def time_passes(self, dice: Dice) -> None:
        self.see(self.world.timer, dice)

    @rule(dice=tapes)
    def the_user_acts(self, dice: Dice) -> None:
        self.see(pick(dice, (self.world.says, self.world.takes_back, self.world.interrupts, self.world.governs)), dice)

    @rule(dice=tapes)
    def a_ghost_answers(self, dice: Dice) -> None:
        self.see(self.world.ghost, dice)

    @precondition(lambda self: self.world.pairs() != ())
    @rule(dice=tapes)
    def two_answers_swap(self, dice: Dice) -> None:
        self.see(self.world.swaps, dice)

    def see(self, deed: Deed, dice: Dice) -> None:
        self.is_sound = False
        deed(dice)
        self.is_sound = True

    def teardown(self) -> None:
        """Without new faults it comes to rest (row 27)."""
        if self.is_sound:
            self.world.heal()


TestLife = Life.TestCase
