-- Follows thesis §4.1.4 (construct terms, fig. 4.3): turns the list of trays that a bakery oven room reports
-- into single notices, lists and boards.

-- (a) one event for each bread
DETECT
  second-oven [ var B ]
ON
  event t: trays {{
    tray {{ bread { var B }, oven { 2 } }},
  }}
END

-- (b) one list of all breads
DETECT
  breads [ all entry [ var B ] group by { var B } ]
ON
  event t: trays {{
    tray {{ bread { var B }, oven { 2 } }},
  }}
END

-- (c) nested grouping, counted and sorted
DETECT
  board [
    all row [
      cell [ var O ],
      cell [ count(all var B) ]
    ] order by (lexical) [ var O ]
  ]
ON
  event t: trays {{
    tray {{ bread { var B }, oven { var O } }},
  }}
END

-- the other aggregations
DETECT
  weights {
    all oven {
      name { var O },
      lightest { min(all var W) },
      heaviest { max(all var W) },
      mean { avg(all var W) },
      total { sum(all var W) }
    } group by { var O } order by [ var O ]
  }
ON
  event t: trays {{
    tray {{ oven { var O }, grams { var W } }}
  }}
END

-- structure within structure
DETECT
  tree {
    all oven {
      @name { var O },
      all bread {
        var B,
        loaves { sum(all var L) }
      } group by { var B }
    } group-by var O
  }
ON
  event t: trays {{
    tray {{ oven { var O }, bread { var B }, loaves { var L } }}
  }}
END

-- a child whose label comes from the data, and a grouping inside an aggregation
DETECT
  summary { all var K { sum(all var N group by { var K }) } group by { var K } }
ON
  event t: trays {{
    counts {{ var K { var N } }}
  }}
END
