-- Follows the event detection algebra, examples 1, 2 and 5 and fig. 3: a walker strikes a lamp post twice within two
-- seconds, unless wind or rain comes in between.

TIME UNIT 1 sec;

-- examples 1 and 2
signal() <- e: algebra ((strike; strike)[2] - (wind | rain));

-- example 5
calm-signal() <- e: algebra ((strike; strike)[2] - (wind; (wind + rain)));

-- fig. 3
weather() <- e: algebra ((rain | wind) - strike);

-- section 2: what comes between is not what comes before
nested() <- e: algebra (rain; (wind; strike));

-- each operator alone
either() <- e: algebra (wind | rain);
both() <- e: algebra (wind + rain);
one-without() <- e: algebra (wind - rain);
one-then() <- e: algebra (wind; rain);
short() <- e: algebra ((wind + rain)[90 sec]);

-- every occurrence, not only the best of each instant
every() <- e: algebra unrestricted (wind + rain);
best() <- e: algebra restricted (wind + rain);

-- without brackets: `[t]` binds tightest, then `;`, `+`, `-` and `|`
bare() <- e: algebra (wind | rain - strike + wind; (rain)[30]);
chain() <- e: algebra (strike; strike; strike - wind - rain);
