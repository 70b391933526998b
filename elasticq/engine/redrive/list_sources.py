"""ListDeadLetterSourceQueues."""

from elasticq.engine.context import ExecutionContext, Outcome, named_queue
from elasticq.engine.paging import page
from elasticq.engine.state import State
from elasticq.model.commands import Call, ListDeadLetterSourceQueues
from elasticq.model.names import queue_url
from elasticq.model.results import DeadLetterSourcesResult


def list_dead_letter_source_queues(
    state: State, call: Call, command: ListDeadLetterSourceQueues, context: ExecutionContext
) -> Outcome:
    """Return a page of the queues whose RedrivePolicy names this queue, from its own account and region.

    A RedrivePolicy cannot name a queue of another account or region.
    """
    target = named_queue(state, call, command.queue_url)
    key = (target.account, target.name)
    names, token = page(lambda after: state.sources.of(key, after), command.max_results, command.next_token)
    return DeadLetterSourcesResult([queue_url(call.endpoint, target.account, name) for name in names], token), []
