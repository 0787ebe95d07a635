-- Follows thesis §13.2.12 (variables that occur only under a negation): beehives that were inspected and in which no
-- disease of any name was found.

DETECT
  healthy { var X }
ON
  event i: inspection {{ hive { var X }, without disease [ var Y ] }}
END

-- in ordered data, nothing of the kind between the two neighbours
DETECT
  steady { var X, from { var A }, to { var B } }
ON
  event i: weighings [[ hive { var X }, gram { var A }, without swarm {{ }}, gram { var B } ]]
END
