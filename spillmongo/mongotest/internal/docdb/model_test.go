package docdb

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"testing"
)

// TestModel compares a view and a transaction with maps, over random writes.
func TestModel(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	db := New(1 << 30)
	model := map[int]int{}
	for range 300 {
		v, txn := db.View(), (*Txn)(nil)
		state := model
		if rng.IntN(2) == 0 {
			txn = db.Begin()
			v = txn.View()
			state = map[int]int{}
			maps.Copy(state, model)
		}
		for range rng.IntN(10) {
			step(t, rng, v, state)
		}
		if txn != nil && rng.IntN(2) == 0 {
			if err := txn.Commit(); err != nil {
				t.Fatal(err)
			}
			model = state
		} else if txn != nil {
			txn.Abort()
		}
		check(t, db.View(), model)
	}
	if len(db.locks) != 0 {
		t.Errorf("%d locks are left", len(db.locks))
	}
}

func step(t *testing.T, rng *rand.Rand, v View, state map[int]int) {
	t.Helper()
	k, x := rng.IntN(30), rng.IntN(100)
	filter := parse(t, fmt.Sprintf(`{"_id":%d}`, k))
	_, there := state[k]
	switch rng.IntN(4) {
	case 0:
		err := v.Insert("db.c", parse(t, fmt.Sprintf(`{"_id":%d,"x":%d}`, k, x)))
		if (err == nil) == there {
			t.Fatalf("insert of %d: %v", k, err)
		}
		if err == nil {
			state[k] = x
		}
	case 1:
		res, err := v.Update("db.c", Update{Filter: filter, Change: parseValue(t, fmt.Sprintf(`{"$set":{"x":%d}}`, x)), Upsert: x%2 == 0})
		if err != nil || (res.Matched == 1) != there {
			t.Fatal(res, err)
		}
		if there || x%2 == 0 {
			state[k] = x
		}
	case 2:
		n, _, err := v.Delete("db.c", filter, nil, false)
		if err != nil || (n == 1) != there {
			t.Fatal(n, err)
		}
		delete(state, k)
	case 3:
		check(t, v, state)
	}
}

func check(t *testing.T, v View, state map[int]int) {
	t.Helper()
	docs, err := v.Find("db.c", Query{})
	if err != nil || len(docs) != len(state) {
		t.Fatalf("%d documents, %v, want %d", len(docs), err, len(state))
	}
	for _, d := range docs {
		if want, ok := state[int(d.Lookup("_id").AsInt64())]; !ok || d.Lookup("x").AsInt64() != int64(want) {
			t.Fatalf("%s, want %d", show(t, d), want)
		}
	}
}
