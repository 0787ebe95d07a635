-- Follows thesis §14.2.4, fig. 14.1 (query plans): a spare part fits between a machine that lacks it and a depot that
-- keeps it.

DETECT
supply [var X, var Y]
ON
  and {
    event i: lacking {{ var X }},
    event j: fits [ var X, var Y ],
    event k: kept {{ var Y }}
  }
END
