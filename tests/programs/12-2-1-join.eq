-- Follows thesis §12.2.1 and §12.2.3 (intermediate results): a container is traced from its ship over its crane to its
-- lorry by joining three events.

traced(x, y) <- i: unloaded(x), j: craned(x, y), k: loaded(y);
