"""remember, recall and forget as AutoGen tools that survive a dump and a load.

The wording, the manners and the deadline are those of `kronmem.tools`; here they only get AutoGen's shape.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar, Self

from autogen_core import CancellationToken, Component
from autogen_core.tools import BaseTool
from pydantic import BaseModel, ConfigDict, Field, GetJsonSchemaHandler, SkipValidation
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from kronmem.agentchat.memory import KronMemory, ToolConfig, until_cancelled
from kronmem.packs import toolset
from kronmem.packs.toolset import DESCRIPTIONS, ToolCoroutine, ToolName, tool_names

# SkipValidation: the schema tells a model the types, and kronmem's functions coerce the values that it sends.


class _Args(BaseModel):
    """The arguments that a model sends; unknown ones are passed on, to be answered with an error."""

    model_config = ConfigDict(extra="allow")

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        made = handler(schema)
        handler.resolve_ref_schema(made).pop("additionalProperties", None)  # a model is shown no others
        return made


class RememberArgs(_Args):
    """The arguments of remember."""

    content: SkipValidation[str] = Field(description=toolset.CONTENT)
    memory_type: SkipValidation[str] = Field(default="fact", description=toolset.TYPE)
    key: SkipValidation[str | None] = Field(default=None, description=toolset.KEY)


class RecallArgs(_Args):
    """The arguments of recall."""

    query: SkipValidation[str] = Field(description=toolset.QUERY)
    limit: SkipValidation[int] = Field(default=5, description=toolset.LIMIT)
    days: SkipValidation[int | None] = Field(default=None, description=toolset.DAYS)


class ForgetArgs(_Args):
    """The arguments of forget."""

    memory_id: SkipValidation[str] = Field(description=toolset.MEMORY_ID)


class ToolAnswer(BaseModel):
    """The words that the model reads."""

    text: str


class _MemoryTool(BaseTool[BaseModel, ToolAnswer], Component[ToolConfig]):
    """One of the three functions of a memory in AutoGen's shape."""

    component_config_schema = ToolConfig
    function: ClassVar[ToolName]
    arguments: ClassVar[type[BaseModel]]

    def __init__(self, memory: KronMemory, *, prefix: str = "") -> None:
        name = tool_names(prefix)[self.function]
        super().__init__(self.arguments, ToolAnswer, name, DESCRIPTIONS[self.function])
        self.memory = memory
        self._prefix = prefix

    async def run(self, args: BaseModel, cancellation_token: CancellationToken) -> ToolAnswer:
        """Run the tool. Never raises but for cancellation: a failing memory is answered in words."""
        # The attributes as they came: dumping them would complain about types that were never checked.
        sent = {name: getattr(args, name) for name in self.arguments.model_fields} | (args.model_extra or {})
        function: Callable[..., ToolCoroutine] = getattr(self.memory.functions(self._prefix), self.function)
        return ToolAnswer(text=await until_cancelled(function(**sent), cancellation_token))

    def return_value_as_string(self, value: object) -> str:
        """The words alone, not as JSON."""
        return value.text if isinstance(value, ToolAnswer) else str(value)

    def _to_config(self) -> ToolConfig:
        return ToolConfig(**self.memory.config().model_dump(), prefix=self._prefix)

    @classmethod
    def _from_config(cls, config: ToolConfig) -> Self:
        return cls(KronMemory.from_config(config), prefix=config.prefix)


class RememberTool(_MemoryTool):
    """Lets a model store a memory."""

    component_provider_override = "kronmem.agentchat.RememberTool"
    function, arguments = "remember", RememberArgs


class RecallTool(_MemoryTool):
    """Lets a model search the memory, and the memories it reads from."""

    component_provider_override = "kronmem.agentchat.RecallTool"
    function, arguments = "recall", RecallArgs


class ForgetTool(_MemoryTool):
    """Lets a model delete a memory of its own, by id."""

    component_provider_override = "kronmem.agentchat.ForgetTool"
    function, arguments = "forget", ForgetArgs
