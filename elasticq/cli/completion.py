"""The command ``elasticq completion``: a script with which bash, zsh or fish completes elasticq's command line.

The scripts are made from the parsers of the commands, so each command and option is completed.
"""

import argparse
from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

FILES: Final = ("FILE", "DIR")
"""The metavars of arguments that are paths."""


class Value(NamedTuple):
    """What follows an option. choices: the possible values, empty if any; is_path: a file or a folder."""

    choices: tuple[str, ...]
    is_path: bool


class Option(NamedTuple):
    """An option with all its names. value: None if the option takes none."""

    names: tuple[str, ...]
    help: str
    value: Value | None


class Command(NamedTuple):
    """A command. path: its words; commands: the names and help texts of those below it; argument: its first one."""

    path: tuple[str, ...]
    commands: dict[str, str]
    options: tuple[Option, ...]
    argument: Value


def add_completion(parser: argparse.ArgumentParser, whole: Callable[[], argparse.ArgumentParser]) -> None:
    """Add the arguments. whole: makes the parser of the whole command line."""
    parser.add_argument("shell", choices=tuple(_SCRIPTS), help="as in: source <(elasticq completion bash)")
    parser.set_defaults(run=lambda options: _print(options.shell, whole()))


def _print(shell: str, parser: argparse.ArgumentParser) -> int:
    print(_SCRIPTS[shell](list(commands_of(parser))))
    return 0


def commands_of(parser: argparse.ArgumentParser, path: tuple[str, ...] = ()) -> Iterator[Command]:
    """Yield the command of a parser, then all commands below it.

    Without a command, elasticq takes the options of ``server``. So they also belong to the empty path.
    """
    below, names = _below(parser), {}
    if below is not None:
        helps = {each.dest: each.help or "" for each in below._choices_actions}
        names = {name: helps.get(name, "") for name in below.choices}
    options = tuple(_options(parser))
    if not path and below is not None and "server" in below.choices:
        options += tuple(each for each in _options(below.choices["server"]) if each not in options)
    yield Command(path, names, options, _argument(parser))
    if below is not None:
        for name, each in below.choices.items():
            yield from commands_of(each, (*path, name))


def _below(parser: argparse.ArgumentParser) -> "argparse._SubParsersAction[argparse.ArgumentParser] | None":
    return next((each for each in parser._actions if isinstance(each, argparse._SubParsersAction)), None)


def _options(parser: argparse.ArgumentParser) -> Iterator[Option]:
    for each in parser._actions:
        if each.option_strings:
            text = "" if each.help in (None, argparse.SUPPRESS) else str(each.help)
            yield Option(tuple(each.option_strings), text, None if each.nargs == 0 else _value(each))


def _argument(parser: argparse.ArgumentParser) -> Value:
    first = (each for each in parser._actions if not each.option_strings)
    each = next(first, None)
    return Value((), False) if each is None or isinstance(each, argparse._SubParsersAction) else _value(each)


def _value(action: argparse.Action) -> Value:
    choices = () if action.choices is None else tuple(map(str, action.choices))
    return Value(choices, action.metavar in FILES or action.dest in ("data_dir",))


# --- bash -----------------------------------------------------------------------------


def _bash(commands: list[Command]) -> str:
    lines = [
        "_elasticq() {",
        '    local cur="${COMP_WORDS[COMP_CWORD]}" prev="${COMP_WORDS[COMP_CWORD-1]}" at="" words="" i',
        "    COMPREPLY=()",
        "    for ((i = 1; i < COMP_CWORD; i++)); do",
        f'        case "$at ${{COMP_WORDS[i]}}" in {_paths(commands)}) at="$at ${{COMP_WORDS[i]}}" ;; esac',
        "    done",
        '    case "$at:$prev" in',
        *(f"        {line}" for each in commands for line in _bash_values(each)),
        "    esac",
        '    case "$at" in',
        *(f'        "{_path(each)}") words="{" ".join(_words(each))}" ;;' for each in commands),
        "    esac",
        '    COMPREPLY=($(compgen -W "$words" -- "$cur"))',
        "}",
        "complete -o bashdefault -o default -F _elasticq elasticq",
    ]
    return "\n".join(lines)


def _path(command: Command) -> str:
    return "".join(f" {word}" for word in command.path)


def _paths(commands: list[Command]) -> str:
    return "|".join(f'"{_path(each)}"' for each in commands if each.path)


def _words(command: Command) -> list[str]:
    options = [name for each in command.options for name in each.names]
    return [*command.commands, *command.argument.choices, *options]


def _bash_values(command: Command) -> Iterator[str]:
    """Yield the cases for words that follow an option with a value."""
    for each in command.options:
        if each.value is None:
            continue
        pattern = "|".join(f'"{_path(command)}:{name}"' for name in each.names)
        if each.value.choices:
            yield f'{pattern}) COMPREPLY=($(compgen -W "{" ".join(each.value.choices)}" -- "$cur")); return ;;'
        elif each.value.is_path:
            yield f'{pattern}) COMPREPLY=($(compgen -f -- "$cur")); return ;;'
        else:
            yield f"{pattern}) return ;;"


# --- zsh ------------------------------------------------------------------------------


def _zsh(commands: list[Command]) -> str:
    lines = [
        "#compdef elasticq",
        "_elasticq() {",
        '    local at="" word; local -a found',
        '    for word in "${(@)words[2,CURRENT-1]}"; do',
        f'        case "$at $word" in ({_paths(commands)}) at="$at $word" ;; esac',
        "    done",
        '    case "$at:${words[CURRENT-1]}" in',
        *(f"        {line}" for each in commands for line in _zsh_values(each)),
        "    esac",
        '    case "$at" in',
        *(f'        ("{_path(each)}") found=({" ".join(_zsh_words(each))}) ;;' for each in commands),
        "    esac",
        "    _describe 'elasticq' found || _files",
        "}",
        'if [ "$funcstack[1]" = "_elasticq" ]; then _elasticq "$@"; else compdef _elasticq elasticq; fi',
    ]
    return "\n".join(lines)


def _zsh_words(command: Command) -> Iterator[str]:
    for name, text in command.commands.items():
        yield _quoted(f"{name}:{text}")
    for choice in command.argument.choices:
        yield _quoted(choice)
    for each in command.options:
        yield from (_quoted(f"{name}:{each.help}") for name in each.names)


def _zsh_values(command: Command) -> Iterator[str]:
    for each in command.options:
        if each.value is None:
            continue
        pattern = "|".join(f'"{_path(command)}:{name}"' for name in each.names)
        if each.value.choices:
            yield f"({pattern}) compadd -- {' '.join(each.value.choices)}; return ;;"
        else:
            yield f"({pattern}) {'_files; return' if each.value.is_path else 'return'} ;;"


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


# --- fish -----------------------------------------------------------------------------


def _fish(commands: list[Command]) -> str:
    paths = " ".join(_quoted(" ".join(each.path)) for each in commands if each.path)
    lines = [
        "function __elasticq_at",
        "    set -l at",
        "    for word in (commandline -opc)[2..]",
        f"        if contains -- (string join ' ' -- $at $word) {paths}",
        "            set -a at $word",
        "        end",
        "    end",
        "    test (string join ' ' -- $at) = \"$argv[1]\"",
        "end",
    ]
    for each in commands:
        at = f"complete -c elasticq -n {_quoted(f'__elasticq_at {_quoted(chr(32).join(each.path))}')}"
        lines += [f"{at} -f -a {_quoted(name)} -d {_quoted(text)}" for name, text in each.commands.items()]
        lines += [f"{at} -f -a {_quoted(choice)}" for choice in each.argument.choices]
        lines += [f"{at} {' '.join(_fish_option(option))}" for option in each.options]
    return "\n".join(lines)


def _fish_option(option: Option) -> Iterator[str]:
    for name in option.names:
        yield f"-l {name[2:]}" if name.startswith("--") else f"-s {name[1:]}"
    if option.value is not None:
        yield "-r -F" if option.value.is_path else "-x"
        if option.value.choices:
            yield f"-a {_quoted(' '.join(option.value.choices))}"
    if option.help:
        yield f"-d {_quoted(option.help)}"


_SCRIPTS: Final[dict[str, Callable[[list[Command]], str]]] = {"bash": _bash, "zsh": _zsh, "fish": _fish}
