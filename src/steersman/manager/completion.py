"""``steersman completion``: a script that completes verbs, flags and their values in a shell.

The scripts are made from the declarations of the verbs. They hold all words, so that completing starts no Python.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Mapping

import msgspec

from steersman.manager.flags import Option
from steersman.manager.verb import Given, Verb, evaluate
from steersman.manager.verbs import VERBS


class Context(msgspec.Struct, frozen=True):
    """The words that may follow a verb such as ``node drain``, or the program's name where ``path`` is empty."""

    path: str
    verbs: tuple[tuple[str, str], ...]
    """The verbs that may follow, with their summaries."""
    flags: tuple[Option, ...]
    words: tuple[str, ...]
    """The values of its arguments."""
    files: bool


def contexts() -> Iterator[Context]:
    """Every place of a command line that words are completed for."""
    yield Context("", tuple((verb.name, verb.summary) for verb in VERBS), (), (), files=False)
    for verb in VERBS:
        for each in (verb, *verb.verbs):
            yield _context(each)


def _context(verb: Verb) -> Context:
    words = [word for argument in verb.arguments for word in evaluate(argument.choices)]
    return Context(
        " ".join(filter(None, (verb.of, verb.name))),
        tuple((each.name, each.summary) for each in verb.verbs),
        tuple(option for option in verb.options if not option.deprecated),
        tuple(words),
        any(argument.files for argument in verb.arguments),
    )


def main(given: Given) -> int:
    """Entry point of ``steersman completion``."""
    print(SHELLS[given.verb.name]())
    return 0


def _names(option: Option) -> list[str]:
    return [
        f"--{option.name}",
        *([f"-{option.short}"] if option.short and option.short != option.name else []),
    ]


# -- bash -------------------------------------------------------------------------------------

_BASH = """\
# bash completion of steersman: source <(steersman completion bash)
_steersman() {{
  local current=${{COMP_WORDS[COMP_CWORD]}} previous=${{COMP_WORDS[COMP_CWORD-1]}} path= word index verbs flags words files
  # bash cuts --flag=value at the equals sign.
  [[ $current == = ]] && current=
  [[ $previous == = ]] && previous=${{COMP_WORDS[COMP_CWORD-2]}}
  for ((index = 1; index < COMP_CWORD; index++)); do
    word=${{COMP_WORDS[index]}}
    case "$path $word" in
{steps}
    esac
  done
  COMPREPLY=()
  case "$path:$previous" in
{values}
  esac
  case "$path" in
{contexts}
  esac
  if [[ $current == -* ]]; then
    COMPREPLY=($(compgen -W "$flags" -- "$current"))
  else
    COMPREPLY=($(compgen -W "$verbs $words" -- "$current"))
    [[ -n $files ]] && COMPREPLY+=($(compgen -f -- "$current"))
  fi
}}
complete -F _steersman steersman"""


def bash() -> str:
    """The script for bash."""
    steps, values, places = [], [], []
    for context in contexts():
        for name, _ in context.verbs:
            path = f"{context.path} {name}".strip()
            steps.append(f"      {shlex.quote(f'{context.path} {name}')}) path={shlex.quote(path)} ;;")
        for option in context.flags:
            reply = _bash_reply(option)
            patterns = "|".join(shlex.quote(f"{context.path}:{name}") for name in _names(option))
            if reply:
                values.append(f'    {patterns}) COMPREPLY=($(compgen {reply} -- "$current")); return ;;')
            elif option.type.bare is None:
                values.append(f"    {patterns}) return ;;")
        flags = " ".join(name for option in context.flags for name in _names(option))
        verbs = " ".join(name for name, _ in context.verbs)
        places.append(
            f"    {shlex.quote(context.path)}) verbs={shlex.quote(verbs)} flags={shlex.quote(flags)} "
            f"words={shlex.quote(' '.join(context.words))} files={'yes' if context.files else ''} ;;"
        )
    return _BASH.format(steps="\n".join(steps), values="\n".join(values), contexts="\n".join(places))


def _bash_reply(option: Option) -> str:
    if option.type.choices:
        return f"-W {shlex.quote(' '.join(option.type.choices))}"
    return {"file": "-f", "directory": "-d"}.get(option.type.completion, "")


# -- zsh --------------------------------------------------------------------------------------


def zsh() -> str:
    """The script for zsh, which runs completions of bash."""
    return "\n".join(
        (
            "#compdef steersman",
            "# zsh completion of steersman: source <(steersman completion zsh)",
            "autoload -Uz compinit bashcompinit",
            "(( $+functions[compdef] )) || compinit -u",
            "bashcompinit",
            bash(),
        )
    )


# -- fish -------------------------------------------------------------------------------------


def fish() -> str:
    """The script for fish."""
    return "\n".join(("# fish completion of steersman: steersman completion fish | source", *_fish()))


def _fish() -> Iterator[str]:
    yield "complete -c steersman -f"
    for context in contexts():
        seen = "; and ".join(f"__fish_seen_subcommand_from {word}" for word in context.path.split())
        here = seen or "__fish_use_subcommand"
        others = " ".join(name for name, _ in context.verbs)
        first = f"{here}; and not __fish_seen_subcommand_from {others}" if seen and others else here
        for name, summary in context.verbs:
            yield f"complete -c steersman -n {shlex.quote(first)} -a {name} -d {shlex.quote(summary)}"
        if context.words:
            yield f"complete -c steersman -n {shlex.quote(here)} -a {shlex.quote(' '.join(context.words))}"
        if context.files:
            yield f"complete -c steersman -n {shlex.quote(here)} -F"
        for option in context.flags:
            short = f" -s {option.short}" if option.short and option.short != option.name else ""
            value = "" if option.type.bare is not None else " -r"
            if option.type.choices:
                value += f" -a {shlex.quote(' '.join(option.type.choices))}"
            elif option.type.completion:
                value += " -F"
            summary = shlex.quote(option.help.partition(". ")[0].rstrip("."))
            yield f"complete -c steersman -n {shlex.quote(here)} -l {option.name}{short}{value} -d {summary}"


SHELLS: Mapping[str, Callable[[], str]] = {"bash": bash, "zsh": zsh, "fish": fish}
