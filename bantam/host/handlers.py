"""The real world that a conversation's requests reach: the API or a model on this machine, and the shell."""

from collections.abc import AsyncGenerator
from typing import TYPE_CHECKING

from bantam.core.base.settings import Config
from bantam.core.effects import CallModel, CheckAnswer, Request, RunShell, RunTool, Sleep
from bantam.core.events import Event, Failure, Fault, ModelFailed, ToolFinished
from bantam.core.rules.redact import Redactor
from bantam.core.wire.presets import LOCAL
from bantam.host import setup
from bantam.host.place import Place
from bantam.shell.net.model import Model
from bantam.shell.run import process, timer
from bantam.shell.runtime import Handler

if TYPE_CHECKING:
    from bantam.shell.net.local import LocalServer


async def no_function(request: RunTool) -> AsyncGenerator[Event, None]:
    """Answers for functions where nobody gave a handler for them."""
    yield ToolFinished(request.id, f"error: nothing here can run the tool {request.name}", error=True)


async def check(request: CheckAnswer) -> AsyncGenerator[Event, None]:
    """Check an answer against the schema of its run."""
    from bantam.shell.disk import schema  # most runs have none

    async for event in schema.check(request):
        yield event


class Outside:
    """Handlers for one configuration after another, all in one place.

    `functions` runs all tools of kind `function`, and keeps to the limits of its request.
    """

    def __init__(
        self, place: Place, config: Config, key: str | None, redactor: Redactor, functions: Handler = no_function
    ) -> None:
        self._place, self._config, self._key, self._redactor = place, config, key, redactor
        self._functions = functions
        self._local: LocalServer | None = None
        self._local_problem = ""
        self._start_local()
        self._model = Model(config.endpoint, key, place.environ, place.clock.wall, redactor)
        self._scale = timer.scale(place.environ)

    def handlers(self) -> dict[type[Request], Handler]:
        """All but the one that asks the user."""
        return {
            CallModel: self._call,
            RunShell: self._run,
            RunTool: self._functions,
            Sleep: lambda request: timer.sleep(request, self._scale),
            CheckAnswer: check,
        }

    def reconfigure(self, config: Config, key: str | None, redactor: Redactor) -> None:
        """Go on with other settings."""
        changed = (config.provider, config.model) != (self._config.provider, self._config.model)
        self._config, self._key, self._redactor = config, key, redactor
        self._model.endpoint, self._model.key, self._model.redactor = config.endpoint, key, redactor
        if changed:
            self._start_local()

    async def close(self) -> None:
        """Leave no connection and no server."""
        await self._model.close()
        if self._local:
            self._local.stop()

    async def _call(self, request: CallModel) -> AsyncGenerator[Event, None]:
        if self._config.provider == LOCAL:
            from bantam.shell.net import local

            try:
                if self._local is None:
                    raise local.LocalProblem(self._local_problem)
                self._model.endpoint = await self._local.endpoint()
            except local.LocalProblem as problem:
                yield ModelFailed(request.id, Failure(Fault.REQUEST, str(problem)))
                return
        async for event in self._model.call(request):
            yield event

    def _run(self, request: RunShell) -> AsyncGenerator[Event, None]:
        environment = setup.child_environment(self._place, self._key)
        return process.run(request, environment, self._redactor.stream(), self._place.folder)

    def _start_local(self) -> None:
        """Have llama.cpp load its model while the user still types."""
        if self._local:
            self._local.stop()
        self._local = None
        if self._config.provider != LOCAL:
            return
        from bantam.shell.net import local

        path = local.find_model(self._config.model, self._place.folder, self._place.user_home)
        if isinstance(path, local.LocalProblem):
            self._local_problem = str(path)
        else:
            self._local = local.LocalServer(path, setup.child_environment(self._place, self._key))
            self._local.begin()
