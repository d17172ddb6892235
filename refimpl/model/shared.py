"""What a draft borrows of its target: the embedding table and the head, held but not owned."""

from torch import Tensor

from refimpl.model.config import DraftConfig, ModelConfig
from refimpl.model.qwen3 import Qwen3


class SharedTables:
    """The target's embedding and head, out of reach of ``parameters()``, ``to()`` and ``state_dict()`` of the draft.

    Args:
        target: whose tables they are.
        config: of the draft that borrows them.

    Raises:
        ValueError: a draft of another width, or one that wants features the target does not have.
    """

    def __init__(self, target: Qwen3, config: DraftConfig) -> None:
        """Checks that the draft fits."""
        name, width, last = type(config).__name__, target.config.hidden_size, target.config.num_hidden_layers - 1
        if config.hidden_size != width:
            raise ValueError(f"{name}: hidden_size {config.hidden_size} on a target of {width}; they share a head")
        if config.feature_layers[-1] >= last:
            raise ValueError(
                f"{name}: feature layer {config.feature_layers[-1]} on a target of {last + 1} layers; "
                f"name layers below {last}"
            )
        self._target = target

    @property
    def target_config(self) -> ModelConfig:
        """The config of the target."""
        return self._target.config

    def embed(self, input_ids: Tensor) -> Tensor:
        """As :meth:`Qwen3.embed`."""
        return self._target.embed(input_ids)

    def logits(self, normed: Tensor) -> Tensor:
        """As :meth:`Qwen3.logits`."""
        return self._target.logits(normed)
