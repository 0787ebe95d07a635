-- Follows thesis §6.9 (accumulation): what a beekeeper's scale reports around the opening of a
-- hive, with conditions inside and outside of the windows.

-- a condition of the negated query, with a variable from outside
DETECT
  light-hive { var H }
ON
  and {
    event o: opened {{ hive { var H }, least { var L } }},
    event w: timer:extend[event o, 2 hours],
    while w: not weight {{ hive { var H }, gram { var G } }} where { var G >= var L, var G < 90000 }
  }
END

-- a condition of the collected query, then one of the whole rule, then one of the aggregate
DETECT
  gain { hive { var H }, mean { avg(all var G) }, from { min(all var G) }, to { max(all var G) } }
ON
  and {
    event o: opened {{ hive { var H } }},
    event w: timer:from-end[event o, 1 day],
    while w: collect weight {{ hive { var H }, gram { var G }, @scale { var S } }} where { var G > 0, var S != "test" }
  } where { var G < 90000, var H != 13 }
  having { count(all var G) >= 3 }
END

-- an answer also where nothing was collected
DETECT
  visits { hive { var H }, number { count(all var V) }, grams { sum(all var G) } }
ON
  and {
    event o: opened {{ hive { var H } }},
    event w: timer:from-end-backward[event o, 1 week],
    while w: collect optional visit {{ hive { var H }, id { var V }, gram { var G } }}
  }
END

-- two windows and three accumulations in one rule
DETECT
  report {
    hive { var H },
    all scale { @name { var S }, count(all var G) } group by { var S },
    sum(all var R)
  }
ON
  and {
    event o: opened {{ hive { var H } }},
    event w: timer:extend-begin[event o, 1 hour],
    event v: timer:extend[event o, 1 hour],
    while w: collect weight {{ hive { var H }, @scale { var S }, gram { var G } }},
    while v: collect rain {{ litres { var R } }},
    while v: not storm {{ }}
  }
END

-- a window that one branch of an `or` sets
DETECT
  unrest { var H }
ON
  and {
    event o: opened {{ hive { var H }, smoke { var K } }},
    or {
      event w: timer:extend[event o, 10 min] where { var K = true },
      event w: timer:extend[event o, 40 min] where { var K = false }
    },
    while(excl,incl) w: not opened {{ hive { var H } }}
  }
END

-- in arrow form; the accumulated event may have an identifier of its own
robbed(h) <- o: weighed(h, g), w: extend(o, 30m), while w: not r: weighed(h, k) where { r != o, k >= g - 200 };
mean(h, avg(g)) <- o: lifted(h), w: from-end(o, 1d), while w: collect weighed(h, g) where { g > 0 }, g < 90000;
rest(h, count(g), sum(g), min(g)) <- o: lifted(h), w: from-end(o, 1d), while w: collect optional weighed(h, g);
alone(h) <- o: lifted(h), while o: not weighed(h, _);
