-- Follows docs/connectors.md: answers go where the program says.
EVENT order(id: string, qty: int);

WRITE big, seen TO "kafka://127.0.0.1:9092/answers?key=id";

big(id, q) <- o: order(id, q), q > 10;
seen(id) <- o: order(id, q);
