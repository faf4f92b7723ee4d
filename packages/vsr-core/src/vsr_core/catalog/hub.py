"""Fetching a model from the Hugging Face hub: only the files it needs, never pickles or code."""

from __future__ import annotations

import glob
import io
import re
from collections.abc import Collection
from pathlib import Path, PurePosixPath
from typing import Any, Protocol

from ..errors import CheckpointError, ConfigError
from ..taxonomy import Artifact
from .manifest import HEAD_WEIGHTS
from .weights import available, is_pickle

__all__ = ["Progress", "cached_snapshot", "download", "wanted_files"]

_TEXTS = (".json", ".txt", ".jinja", ".model")
_MODULE = re.compile(r"\d+_\w+")
_TRANSFORMER_FOLDERS = ("", "0_Transformer")


class Progress(Protocol):
    """Told how a download goes; called from several threads."""

    def __call__(self, description: str, completed: int, total: int | None) -> None:
        """``completed`` of ``total`` are done, in bytes or files as the description says."""


def download(
    repository: str,
    revision: str,
    *,
    path: str = "",
    artifact: Artifact | None = None,
    cache_dir: Path | None = None,
    progress: Progress | None = None,
    name: str,
) -> Path:
    """Bring a repository's model into the cache and give its snapshot folder, whose name is the commit.

    Without a network, or with ``HF_HUB_OFFLINE`` set, what the cache has is used as it is.

    :param path: a folder or file of the repository, where only that is wanted beside the configuration.
    :param artifact: the form of the weights to fetch.
    :param name: the source as the user wrote it, for messages.
    :raises ConfigError: the hub library is not installed.
    :raises CheckpointError: unreachable and not cached, unknown, gated, or with nothing in it that may be loaded.
    """
    try:
        import huggingface_hub
        from huggingface_hub import errors
    except ImportError:
        raise ConfigError(
            f"{name}: reading from the hub needs huggingface_hub; install it with: pip install 'vsr-core[local]'"
        ) from None
    try:
        try:
            listed = huggingface_hub.HfApi(library_name="vsr-core").list_repo_files(repository, revision=revision)
        except (errors.RepositoryNotFoundError, errors.RevisionNotFoundError):
            raise
        except Exception:  # noqa: BLE001 - offline, no network, a failing hub: each library version has its own errors
            return cached_snapshot(repository, revision, cache_dir)
        wanted = wanted_files(listed, path=path, artifact=artifact, name=name)
        return Path(
            huggingface_hub.snapshot_download(
                repository,
                revision=revision,
                cache_dir=cache_dir,
                allow_patterns=[glob.escape(file) for file in wanted],
                library_name="vsr-core",
                tqdm_class=_reporting_to(progress, name),
            )
        )
    except CheckpointError:
        raise
    except Exception as error:  # noqa: BLE001 - whatever the hub library raises becomes one error that names the source
        raise CheckpointError(f"{name}: {_reason(error, repository, revision)}") from None


def wanted_files(
    names: Collection[str], *, path: str = "", artifact: Artifact | None = None, name: str
) -> tuple[str, ...]:
    """The files of a repository that make up the model, sorted: configuration, tokenizer, and one form of weights.

    :raises CheckpointError: no weights, or none but pickles.
    """
    kept = {file for file in names if file.endswith(_TEXTS) and _near(file, path)}
    kept |= {file for file in names if file.endswith("/model.safetensors") and _in_module(file, path)}
    kept |= {file for file in names if PurePosixPath(file).name == HEAD_WEIGHTS and _near(file, path)}
    if path and path in names:
        data = re.compile(re.escape(path) + r"[._]data.*")
        beside = {str(PurePosixPath(path).with_suffix(".bin"))} if path.endswith(".xml") else set()
        return tuple(sorted(kept | {path} | {file for file in names if data.fullmatch(file) or file in beside}))
    weights = _weights(names, path, artifact, name)
    if not weights and any(is_pickle(file) for file in names):
        raise CheckpointError(
            f"{name}: holds only pickled weights, and loading those would run code; use another revision"
        )
    if not weights:
        raise CheckpointError(f"{name}: holds no weights that can be loaded (.safetensors, .onnx, .xml, .gguf)")
    return tuple(sorted(kept | set(weights)))


def _weights(names: Collection[str], path: str, artifact: Artifact | None, name: str) -> tuple[str, ...]:
    for base in (path,) if path else _TRANSFORMER_FOLDERS:
        offered = available(names, base)
        if not offered:
            continue
        form = artifact if artifact in offered else next(iter(offered))
        if offered[form]:
            return offered[form]
        raise CheckpointError(
            f"{name}: holds several {form} weights; name the file to load after the revision: {name}/FILE"
        )
    return ()


def _near(file: str, path: str) -> bool:
    """Whether a text file belongs to the model: it is at the top, in a module's folder, or below the path."""
    return PurePosixPath(file).parent.as_posix() in (".", path) or _in_module(file, path)


def _in_module(file: str, path: str) -> bool:
    folder = PurePosixPath(file).parent
    return _MODULE.fullmatch(folder.name) is not None and folder.parent == PurePosixPath(path)


def cached_snapshot(repository: str, revision: str, cache_dir: Path | None) -> Path:
    """The snapshot in the cache; what may be missing in it, the inspection of the model says.

    Only ``config.json`` is asked for, since the library would miss every file of the repository that a model does
    not need and :func:`download` left out.
    """
    import huggingface_hub

    return Path(
        huggingface_hub.snapshot_download(
            repository, revision=revision, cache_dir=cache_dir, allow_patterns=["config.json"], local_files_only=True
        )
    )


def _reason(error: Exception, repository: str, revision: str) -> str:
    from huggingface_hub import errors

    if isinstance(error, errors.GatedRepoError):
        return f"{repository} is gated; ask for access on its page and set HF_TOKEN"
    if isinstance(error, errors.RepositoryNotFoundError):
        return f"there is no repository {repository!r}, or it is private; check the name, or set HF_TOKEN"
    if isinstance(error, errors.RevisionNotFoundError):
        return f"the repository has no revision {revision!r}; use a branch, a tag or a commit it has"
    if isinstance(error, errors.LocalEntryNotFoundError):
        return (
            f"revision {revision!r} is not in the local cache and the hub cannot be reached; "
            "download it once with a network, or unset HF_HUB_OFFLINE"
        )
    status = getattr(getattr(error, "response", None), "status_code", None)
    told = f"HTTP status {status}" if status is not None else type(error).__name__
    return f"the download failed ({told}); try again, or fetch the files by other means and give their path"


def _reporting_to(progress: Progress | None, name: str) -> type[Any]:
    """A progress bar class that draws nothing and reports to ``progress``, if there is one."""
    from tqdm.std import tqdm  # type: ignore[import-untyped]

    class Reporting(tqdm):  # type: ignore[misc]
        monitor_interval = 0  # no watching thread

        def __init__(self, *args: Any, **kwargs: Any) -> None:
            kwargs.pop("name", None)
            super().__init__(*args, **{**kwargs, "file": io.StringIO(), "disable": False})

        def display(self, *args: Any, **kwargs: Any) -> bool:
            if progress is not None:
                total = int(self.total) if self.total else None
                progress(f"{name}: {self.desc.rstrip(': ')}", int(self.n), total)
            return True

        def clear(self, *args: Any, **kwargs: Any) -> None:
            pass

        def __del__(self) -> None:
            pass  # the library leaves bars open; collecting one later is no progress

    return Reporting
