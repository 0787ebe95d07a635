-- Follows thesis §18.2.4 (boundaries of a window): how many boats passed a lock in the hour before a boat, with or
-- without that boat itself and the one at the very beginning of the hour.

DETECT
  passed { count(all var X) }
ON
  and {
    event a: boat { var N },
    event w: timer:extend-backward[event a, 1 hour],
    while w: collect boat { var X }
  }
END

DETECT
  passed-both { count(all var X) }
ON
  and {
    event a: boat { var N },
    event w: timer:extend-backward[event a, 1 hour],
    while(incl,incl) w: collect boat { var X }
  }
END

DETECT
  passed-before { count(all var X) }
ON
  and {
    event a: boat { var N },
    event w: timer:extend-backward[event a, 1 hour],
    while(incl,excl) w: collect boat { var X }
  }
END

DETECT
  passed-later { count(all var X) }
ON
  and {
    event a: boat { var N },
    event w: timer:extend-backward[event a, 1 hour],
    while(excl,incl) w: collect boat { var X }
  }
END

DETECT
  passed-between { count(all var X) }
ON
  and {
    event a: boat { var N },
    event w: timer:extend-backward[event a, 1 hour],
    while(excl, excl) w: collect boat { var X }
  }
END

-- in arrow form
first-in-an-hour(n) <- a: barge(n), w: extend-begin(a, 1h), while(incl, excl) w: not barge(_);
last-in-an-hour(n) <- a: barge(n), w: extend(a, 1h), while(excl, incl) w: not barge(_);
