-- Follows thesis §18.1.3 (syntactic sugar, having): hikes whose stages add up to a long climb, first by two rules and
-- then by a condition on the sum.

DETECT
  climb[ var ID, sum(all var P) ]
ON
  event h: hike {{
    id { var ID }
    stages {{
      stage {{
        metres { var P }
      }}
    }}
  }}
END

DETECT
  steep [ var ID ]
ON
  event c: climb[ var ID, var S ] where { var S > 1400 }
END

DETECT
  steep-too [ var ID ]
ON
  event h: hike {{
    id { var ID }
    stages {{
      stage {{
        metres { var P }
      }}
    }}
  }}
  having { sum(all var P) > 1400 }
END

-- without braces, and behind a `where`
DETECT
  many-short-stages [ var ID, max(all var P) ]
ON
  event h: hike {{
    id { var ID },
    stages {{ stage {{ metres { var P } }} }}
  }}
  where { var P < 300 }
  having count(all var P) >= 5
END

-- over a collection, with several conditions
DETECT
  busy-hut { hut { var H }, guests { count(all var G) } }
ON
  and {
    event e: evening {{ hut { var H } }},
    event w: timer:from-end-backward[event e, 10 hours],
    while w: collect arrived {{ hut { var H }, guest { var G }, age { var A } }}
  }
  having { count(all var G) > 30, avg(all var A) < 25 or min(all var A) < 6 }
END

-- in arrow form
full(h, count(g)) <- e: evening(h), w: from-end-backward(e, 10h), while w: collect arrived(h, g), having count(g) > 30;
crowded(h) <- e: evening(h), w: from-end-backward(e, 10h), while w: collect stay(h, g, a)
  having { count(g) > 30, sum(a) / count(g) < 25 };
