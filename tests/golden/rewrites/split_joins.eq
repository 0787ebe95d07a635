EVENT order(id: int, item: string);
EVENT shipped(id: int, parcel: int);
EVENT delivered(parcel: int);

completed(id, item) <- o: order(id, item), s: shipped(id, parcel), d: delivered(parcel),
    o before s, s before d, {o, d} within 2 days;
