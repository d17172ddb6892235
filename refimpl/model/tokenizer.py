"""Text to tokens and back: byte-level BPE, and a stream of text that never shows half a character."""

import codecs
from collections.abc import Iterable
from pathlib import Path

import tokenizers

BOS, EOS, MASK = "<bos>", "<eos>", "<mask>"
_UNKNOWN = "\N{REPLACEMENT CHARACTER}".encode()
TOKENIZER_PATH = Path(__file__).parent / "weights" / "tokenizer.json"


class Tokenizer:
    """A byte-level BPE tokenizer whose vocabulary holds ``<bos>``, ``<eos>`` and ``<mask>``.

    Args:
        backend: the tokenizer of the ``tokenizers`` library; its model must be byte-level BPE.

    Raises:
        ValueError: a vocabulary that lacks one of the three special tokens.

    Example:
        >>> tokenizer = Tokenizer.of_bytes()
        >>> tokenizer.encode("hé", bos=False)
        [104, 195, 169]
        >>> tokenizer.decode([104, 195, 169])
        'hé'
    """

    def __init__(self, backend: tokenizers.Tokenizer) -> None:
        """Reads the bytes of every token once."""
        self._backend = backend
        # A prompt that spells "<eos>" means these five characters: only the program may end a text.
        self._backend.encode_special_tokens = True
        self.bos_token_id = self._special(BOS)
        self.eos_token_id = self._special(EOS)
        self.mask_token_id = self._special(MASK)
        self._bytes = self._bytes_of_tokens()

    @classmethod
    def load(cls, path: Path = TOKENIZER_PATH) -> "Tokenizer":
        """Reads a ``tokenizer.json``; that of the trained sizes by default.

        Raises:
            FileNotFoundError: no such file.
            ValueError: not a tokenizer, or one without the special tokens.
        """
        if not path.is_file():
            raise FileNotFoundError(f"{path}: no tokenizer there; it comes with the weights")
        content = path.read_bytes()
        try:
            backend = tokenizers.Tokenizer.from_buffer(content)
        except Exception as error:  # the library raises Exception itself
            raise ValueError(f"{path}: not a tokenizer ({error}); fetch it again") from error
        return cls(backend)

    @classmethod
    def of_bytes(cls) -> "Tokenizer":
        """A tokenizer that merges nothing: token ``b`` is byte ``b``, then come the special tokens. For tests."""
        characters = _characters_of_bytes()
        vocabulary = {characters[byte]: byte for byte in range(256)}
        backend = tokenizers.Tokenizer(tokenizers.models.BPE(vocab=vocabulary, merges=[]))
        backend.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
        backend.decoder = tokenizers.decoders.ByteLevel()
        backend.add_special_tokens([BOS, EOS, MASK])
        return cls(backend)

    @property
    def vocab_size(self) -> int:
        """Tokens, the special ones included."""
        return len(self._bytes)

    def encode(self, text: str, *, bos: bool = True) -> list[int]:
        """Tokens of a text, after ``<bos>`` unless told otherwise. Names of special tokens in it are plain text."""
        ids: list[int] = self._backend.encode(text, add_special_tokens=False).ids
        return [self.bos_token_id, *ids] if bos else ids

    def decode(self, ids: Iterable[int]) -> str:
        """The text of tokens; special tokens have none. Bytes that are no UTF-8 become U+FFFD, and so do tokens beyond
        this vocabulary, which a target with a larger one may emit."""
        return _spelled(self._bytes, ids).decode("utf-8", errors="replace")

    def stream(self) -> "TextStream":
        """A decoder for tokens that come one by one."""
        return TextStream(self._bytes)

    def _special(self, name: str) -> int:
        token: int | None = self._backend.token_to_id(name)
        if token is None:
            raise ValueError(f"Tokenizer: the vocabulary has no {name}; reserve {BOS}, {EOS} and {MASK} in it")
        return token

    def _bytes_of_tokens(self) -> list[bytes]:
        byte_of = {character: byte for byte, character in _characters_of_bytes().items()}
        special = {self.bos_token_id, self.eos_token_id, self.mask_token_id}
        spelled = {token: name for name, token in self._backend.get_vocab().items() if token not in special}
        return [
            bytes(byte_of[character] for character in spelled.get(token, ""))
            for token in range(self._backend.get_vocab_size())
        ]


class TextStream:
    """Turns tokens into text as they come; what it has returned in all is what :meth:`Tokenizer.decode` would return.

    A token may end in the middle of a character: the stream keeps those bytes until the rest is there.
    """

    def __init__(self, bytes_of_tokens: list[bytes]) -> None:
        """Begins with nothing."""
        self._bytes = bytes_of_tokens
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")

    def push(self, ids: Iterable[int]) -> str:
        """The text that these tokens complete; may be empty."""
        return self._decoder.decode(_spelled(self._bytes, ids))

    def finish(self) -> str:
        """What is left when no token comes any more: U+FFFD for half a character, else nothing."""
        return self._decoder.decode(b"", final=True)


def _spelled(bytes_of_tokens: list[bytes], ids: Iterable[int]) -> bytes:
    return b"".join(bytes_of_tokens[token] if token < len(bytes_of_tokens) else _UNKNOWN for token in ids)


def _characters_of_bytes() -> dict[int, str]:
    """The printable character that byte-level BPE writes for each byte, as GPT-2 chose them.

    Printable bytes of Latin-1 stand for themselves, the others for the characters from U+0100 on, in their order.
    """
    themselves = [*range(ord("!"), ord("~") + 1), *range(ord("¡"), ord("¬") + 1), *range(ord("®"), ord("ÿ") + 1)]
    others = [byte for byte in range(256) if byte not in themselves]
    return {byte: chr(byte) for byte in themselves} | {byte: chr(256 + at) for at, byte in enumerate(others)}
