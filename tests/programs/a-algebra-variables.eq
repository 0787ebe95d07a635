-- Follows the event detection algebra, §3.1 (values of primitive events): the same signal separately for each lamp
-- post, with data from its parts and next to other literals.

EVENT strike(post: string);
EVENT wind(force: int);
EVENT rain(post: string, litres: float);
EVENT light(post: string);

signal(p) <- e: algebra ((strike(p); strike(p))[2 sec] - (wind(_) | rain(p, _)));

-- a variable of the head stands in every alternative
seen(p) <- e: algebra (strike(p) | light(p) | rain(p, 0.5));

-- a limit on one event, a named atom, a bare label, and nesting
lit(p, f) <- e: algebra unrestricted (((strike(post: p)[1 sec] + wind(f)); light(p))[1 min] - (rain - light(p)));

-- an algebra expression as the anchor of a timer
dark(p) <- e: algebra ((strike(p); strike(p))[2 sec] - rain(p, _)), w: from-end(e, 10 sec), while w: not light(p);

-- in block form, with terms
DETECT
  answered { post { var P } }
ON
  and {
    event e: algebra (
      (strike {{ post { var P } }}; strike {{ post { var P } }})[2 sec]
      - (wind | rain {{ post { var P } }})
    ),
    event l: light { post { var P } }
  } where { e before l, {e,l} within 1 min }
END
