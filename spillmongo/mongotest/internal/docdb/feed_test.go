package docdb

import (
	"slices"
	"strings"
	"testing"
)

func TestFeed(t *testing.T) {
	db := New(1 << 20)
	v := db.View()
	start := db.Now()
	_, changed, err := db.Since(start, "")
	if err != nil {
		t.Fatal(err)
	}
	if err := v.Insert("db.c", parse(t, `{"_id":1}`)); err != nil {
		t.Fatal(err)
	}
	<-changed
	if _, err := v.Update("db.c", Update{Change: parseValue(t, `{"$set":{"a":1}}`)}); err != nil {
		t.Fatal(err)
	}
	if _, _, err := v.Delete("db.c", nil, nil, true); err != nil {
		t.Fatal(err)
	}
	if err := v.Insert("other.c", parse(t, `{"_id":1}`)); err != nil {
		t.Fatal(err)
	}
	db.Drop("db.c")
	for ns, want := range map[string]string{
		"":        "insert update delete insert drop",
		"db":      "insert update delete drop",
		"db.c":    "insert update delete drop",
		"db.none": "",
		"other":   "insert",
	} {
		changes, _, err := db.Since(start, ns)
		var got []string
		for _, c := range changes {
			got = append(got, c.Operation)
		}
		if strings.Join(got, " ") != want || err != nil {
			t.Errorf("%q: got %v, %v, want %s", ns, got, err, want)
		}
	}
	for range 2*keep + 1 {
		db.note(Change{Namespace: "db.c"})
	}
	if _, _, err := db.Since(start, ""); err == nil {
		t.Error("the history reaches back for ever")
	}
	if changes, _, err := db.Since(db.Now()-keep, ""); len(changes) != keep || err != nil {
		t.Errorf("%d changes, %v", len(changes), err)
	}
}

func TestNamespaces(t *testing.T) {
	for ns, ok := range map[string]bool{
		"db.c": true, "db.c.d": true, "": false, "db": false, "db.": false, ".c": false, "a b.c": false, "a$.c": false,
		"db." + strings.Repeat("x", 252): true, "db." + strings.Repeat("x", 253): false,
	} {
		if err := New(1 << 20).Create(ns); (err == nil) != ok {
			t.Errorf("%q: %v", ns, err)
		}
	}
	db := New(1 << 20)
	for _, ns := range []string{"b.y", "a.x", "b.x"} {
		if err := db.Create(ns); err != nil || db.Create(ns) == nil {
			t.Error(ns, err)
		}
	}
	if got := db.Collections("b"); !slices.Equal(got, []string{"x", "y"}) {
		t.Errorf("got %v", got)
	}
	if got := db.Databases(); len(got) != 2 || got[0].Name != "a" || got[0].Bytes == 0 {
		t.Errorf("got %v", got)
	}
}

// TestHistoryIsBounded: documents that are gone do not add up.
func TestHistoryIsBounded(t *testing.T) {
	const limit = 100_000
	db := New(limit)
	big := parse(t, `{"_id": 1, "s": "`+strings.Repeat("x", limit/8)+`"}`)
	for range 100 {
		if err := db.View().Insert("a.b", big); err != nil {
			t.Fatal(err)
		}
		if _, _, err := db.View().Delete("a.b", nil, nil, true); err != nil {
			t.Fatal(err)
		}
	}
	at := db.Now()
	for at > 0 {
		if _, _, err := db.Since(at-1, ""); err != nil {
			break
		}
		at--
	}
	changes, _, err := db.Since(at, "")
	bytes := 0
	for _, c := range changes {
		bytes += len(c.Document)
	}
	if bytes == 0 || bytes > limit || err != nil {
		t.Errorf("%d changes of %d bytes are remembered, want up to %d: %v", len(changes), bytes, limit, err)
	}
}
