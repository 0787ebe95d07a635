-- Follows the event detection algebra, theorems 2 and 3: each rule's two sides mean the same, told of the sounds in a
-- workshop.

TIME UNIT 100 ms;

-- theorem 2
idempotent() <- l: algebra unrestricted (saw | saw), r: algebra unrestricted (saw), l equals r;
commutes() <- l: algebra unrestricted (saw + plane), r: algebra unrestricted (plane + saw), l equals r;
associates() <- l: algebra unrestricted (saw; (plane; file)), r: algebra unrestricted ((saw; plane); file), l equals r;
distributes() <- l: algebra unrestricted ((saw | plane); file), r: algebra unrestricted ((saw; file) | (plane; file)),
  l equals r;
no-twice() <- l: algebra unrestricted ((saw - file) - file), r: algebra unrestricted (saw - file), l equals r;
no-either() <- l: algebra unrestricted ((saw - plane) - file), r: algebra unrestricted (saw - (plane | file)),
  l equals r;
inwards() <- l: algebra unrestricted ((saw; plane) - file),
  r: algebra unrestricted (((saw - file); (plane - file)) - file), l equals r;

-- theorem 3
shortest() <- l: algebra unrestricted ((saw + plane)[30][50]), r: algebra unrestricted ((saw + plane)[30]), l equals r;
of-both() <- l: algebra unrestricted ((saw + plane)[30]), r: algebra unrestricted (((saw)[30] + plane)[30]), l equals r;
of-neither() <- l: algebra unrestricted ((saw - plane)[30]), r: algebra unrestricted ((saw)[30] - plane), l equals r;
of-then() <- l: algebra unrestricted ((saw; plane)[30]), r: algebra unrestricted ((saw; (plane)[30])[30]), l equals r;
