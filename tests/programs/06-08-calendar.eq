-- Follows thesis §6.8 (periodic time intervals): a stall sells flowers below what it paid for them on the same
-- market day.

DETECT
  sold-off {
    stall { var C },
    flower { var S }
  }
ON
  and {
    event b: bought {{
      stall { var C },
      flower { var S },
      price { var P1 }
    }},
    event s: sold {{
      stall { var C },
      flower { var S },
      price { var P2 }
    }}
  } where { {b,s} in cal:market-day() , b before s, var P1 > var P2 }
END

-- in arrow form, with the calendar both as a condition and as an event, which there needs an identifier
same-day(c, w) <- b: delivery(c), r: complaint(c), d: cal:market-day(weekday: w),
  {b,r} in cal:market-day(), b during d, r during d;
