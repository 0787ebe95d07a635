-- Follows thesis §6.3 and §6.7, with what the house adds: periods, windows, and lengths that data say.

EVENT weighed(hive: string, gram: int);
EVENT opened(hive: string, minutes: float);
EVENT closed(hive: string);
TABLE hives(hive: string, hours: int);

-- each event in one window, and in several
gain(h, min(g), max(g)) <- w: window 1d, while w: collect weighed(h, g);
trend(h, avg(g)) <- w: window 1w every 1d offset 6h, while w: collect weighed(h, g) where { g > 0 };

-- what did not happen in a period
silent(h) <- t: every 30m, hives(h, _), while t: not weighed(h, _);

-- as long as an event says, and as a table says; a timer on such a timer
forgotten(h) <- o: opened(h, m), w: extend(o, 60 * m + 30 AT MOST 2h), while w: not closed(h);
unseen(h) <-
    o: closed(h),
    hives(h, n),
    w: from-end(o, 3600 * n AT MOST 1w),
    u: shorten-begin(w, duration(w) / 2 AT MOST 3d12h),
    while u: not opened(h, _);

DETECT
  restless { hive { var H }, times { count(all var M) } }
ON
  and {
    event w: window 1 hour every 10 min,
    while w: collect opened {{ hive { var H }, minutes { var M } }},
    event o: opened {{ hive { var H }, minutes { var N } }},
    event d: timer:shift-forward[event o, 60 * var N AT MOST 1 hour]
  } where { o starts w, d during w }
END
