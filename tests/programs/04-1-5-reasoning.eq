-- Follows thesis §4.1.5 (reasoning with rules, fig. 4.4): which mountain huts can be reached from which, over
-- the footpaths that were reported open within one day.

DETECT
  reach { from { var F }, to { var T } }
ON
  desc path {{
    begins { var F }
    ends { var T }
  }}
END

DETECT
  reach { from { var F }, to { var T } }
ON
  and {
    event p: desc path {{
      begins { var X },
      ends { var T }
    }},
    event r: reach { from { var F }, to { var X } }
  } where { {p,r} within 1 day }
END

-- the goal is a message, not an event: an event with `all` would depend on itself through `desc`
RAISE
  to(recipient="overview", transport="console") {
    overview [
      all row [
        cell [ var F ],
        cell [ list [ all item [ var T ] ] ]
      ]
    ]
  }
ON
  reach { from { var F }, to { var T } }
END
