package docdb

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// parse reads extended JSON.
func parse(t testing.TB, text string) bson.Raw {
	t.Helper()
	var d bson.D
	if err := bson.UnmarshalExtJSON([]byte(text), false, &d); err != nil {
		t.Fatal(text, err)
	}
	raw, err := bson.Marshal(d)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// parseValue reads a value of any type.
func parseValue(t testing.TB, text string) bson.RawValue {
	t.Helper()
	return parse(t, `{"v": `+text+`}`).Lookup("v")
}

// show is doc as short extended JSON.
func show(t testing.TB, doc bson.Raw) string {
	t.Helper()
	out, err := bson.MarshalExtJSON(doc, false, false)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

func showAll(t testing.TB, docs []bson.Raw) string {
	t.Helper()
	var out []string
	for _, d := range docs {
		out = append(out, show(t, d))
	}
	return strings.Join(out, " ")
}

func TestMatch(t *testing.T) {
	const doc = `{"_id":1,"n":5,"s":"abc","null":null,"d":{"a":1,"b":[1,2]},"list":[1,5,9],"docs":[{"k":1,"v":2},{"k":3,"v":4}],"t":true}`
	for _, test := range []struct {
		filter string
		want   bool
	}{
		{`{}`, true},
		{`{"n":5}`, true},
		{`{"n":5.0}`, true},
		{`{"n":{"$numberLong":"5"}}`, true},
		{`{"n":{"$numberDecimal":"5"}}`, true},
		{`{"n":"5"}`, false},
		{`{"n":5,"s":"x"}`, false},
		{`{"missing":null}`, true},
		{`{"null":null}`, true},
		{`{"n":null}`, false},
		{`{"d.a":1}`, true},
		{`{"d":{"a":1,"b":[1,2]}}`, true},
		{`{"d":{"a":1}}`, false},
		{`{"list":5}`, true},
		{`{"list":[1,5,9]}`, true},
		{`{"list.1":5}`, true},
		{`{"list.0":5}`, false},
		{`{"docs.k":3}`, true},
		{`{"docs.1.v":4}`, true},
		{`{"docs.k":2}`, false},
		{`{"n":{"$eq":5}}`, true},
		{`{"n":{"$ne":5}}`, false},
		{`{"list":{"$ne":5}}`, false},
		{`{"missing":{"$ne":1}}`, true},
		{`{"n":{"$gt":4,"$lt":6}}`, true},
		{`{"n":{"$gt":5}}`, false},
		{`{"n":{"$gte":5,"$lte":5}}`, true},
		{`{"s":{"$gt":4}}`, false},
		{`{"list":{"$gt":8}}`, true},
		{`{"missing":{"$lt":8}}`, false},
		{`{"n":{"$in":[1,5]}}`, true},
		{`{"s":{"$in":[{"$regularExpression":{"pattern":"^A","options":"i"}}]}}`, true},
		{`{"n":{"$nin":[1,5]}}`, false},
		{`{"n":{"$in":[]}}`, false},
		{`{"n":{"$exists":true}}`, true},
		{`{"missing":{"$exists":true}}`, false},
		{`{"missing":{"$exists":0}}`, true},
		{`{"n":{"$not":{"$gt":5}}}`, true},
		{`{"list":{"$all":[1,9]}}`, true},
		{`{"list":{"$all":[1,2]}}`, false},
		{`{"list":{"$all":[]}}`, false},
		{`{"list":{"$size":3}}`, true},
		{`{"list":{"$size":2}}`, false},
		{`{"list":{"$elemMatch":{"$gt":4,"$lt":6}}}`, true},
		{`{"list":{"$elemMatch":{"$gt":5,"$lt":9}}}`, false},
		{`{"docs":{"$elemMatch":{"k":1,"v":2}}}`, true},
		{`{"docs":{"$elemMatch":{"k":1,"v":4}}}`, false},
		{`{"s":{"$regularExpression":{"pattern":"b","options":""}}}`, true},
		{`{"s":{"$regex":"^A","$options":"i"}}`, true},
		{`{"s":{"$regex":"^B"}}`, false},
		{`{"$and":[{"n":5},{"t":true}]}`, true},
		{`{"$and":[{"n":5},{"t":false}]}`, false},
		{`{"$or":[{"n":4},{"t":true}]}`, true},
		{`{"$nor":[{"n":4},{"t":true}]}`, false},
		{`{"$comment":"x"}`, true},
	} {
		if got, err := Match(parse(t, test.filter), parse(t, doc)); got != test.want || err != nil {
			t.Errorf("%s: got %v, %v, want %v", test.filter, got, err, test.want)
		}
	}
}

func TestMatchRejects(t *testing.T) {
	for _, filter := range []string{
		`{"$where":"1"}`, `{"n":{"$near":1}}`, `{"$and":1}`, `{"$or":[1]}`, `{"n":{"$in":1}}`, `{"n":{"$all":1}}`,
		`{"n":{"$elemMatch":1}}`, `{"n":{"$elemMatch":{"$x":1}}}`, `{"n":{"$regex":1}}`, `{"n":{"$regex":"("}}`,
		`{"n":{"$regex":"a","$options":"x"}}`, `{"n":{"$not":{"$x":1}}}`,
	} {
		if _, err := Match(parse(t, filter), nil); err == nil {
			t.Errorf("%s was accepted", filter)
		}
	}
}

// TestOrder has values in the order that they must have, in groups of equals.
func TestOrder(t *testing.T) {
	groups := [][]string{
		{`{"$minKey":1}`},
		{`null`, `{"$undefined":true}`},
		{`-1.5`},
		{`0`, `0.0`, `{"$numberLong":"0"}`, `{"$numberDecimal":"0"}`},
		{`1`},
		{`{"$numberDecimal":"1.5"}`, `1.5`},
		{`{"$numberLong":"9007199254740993"}`},
		{`""`}, {`"a"`, `{"$symbol":"a"}`}, {`"b"`},
		{`{}`}, {`{"a":1}`}, {`{"a":1,"b":1}`}, {`{"a":2}`}, {`{"b":1}`}, {`{"a":"1"}`},
		{`[]`}, {`[1]`}, {`[1,2]`},
		{`{"$binary":{"base64":"AA==","subType":"00"}}`},
		{`{"$oid":"000000000000000000000001"}`}, {`{"$oid":"000000000000000000000002"}`},
		{`false`}, {`true`},
		{`{"$date":{"$numberLong":"-1"}}`}, {`{"$date":{"$numberLong":"1"}}`},
		{`{"$timestamp":{"t":1,"i":2}}`}, {`{"$timestamp":{"t":2,"i":1}}`},
		{`{"$regularExpression":{"pattern":"a","options":""}}`},
		{`{"$code":"f"}`},
		{`{"$maxKey":1}`},
	}
	for i, a := range groups {
		for j, b := range groups {
			for _, x := range a {
				for _, y := range b {
					vx, vy := parseValue(t, x), parseValue(t, y)
					got := compare(vx, vy)
					if got < 0 != (i < j) || got > 0 != (i > j) {
						t.Errorf("%s and %s compare as %d", x, y, got)
					}
					if same := key(vx) == key(vy); same != (i == j) {
						t.Errorf("%s and %s have the same key: %v", x, y, same)
					}
				}
			}
		}
	}
}

// TestKeyOfDeepDocument has a key that grows with its document, and no faster.
func TestKeyOfDeepDocument(t *testing.T) {
	v := parseValue(t, strings.Repeat(`{"a":`, 150)+"1"+strings.Repeat("}", 150))
	if k := key(v); len(k) > len(v.Value) {
		t.Errorf("%d bytes for %d", len(k), len(v.Value))
	}
}

func TestUpdate(t *testing.T) {
	for _, test := range []struct{ doc, change, want string }{
		{`{"_id":1,"a":1}`, `{"b":2}`, `{"_id":1,"b":2}`},
		{`{"_id":1,"a":1}`, `{"_id":1,"b":2}`, `{"_id":1,"b":2}`},
		{`{"_id":1}`, `{"_id":2}`, `code 66`},
		{`{"_id":1}`, `{"a":1,"$set":{"b":1}}`, `code 9`},
		{`{"_id":1,"a":1}`, `{"$set":{"a":2,"b.c":3}}`, `{"_id":1,"a":2,"b":{"c":3}}`},
		{`{"_id":1,"a":null}`, `{"$set":{"a":2}}`, `{"_id":1,"a":2}`},
		{`{"_id":1,"a":null}`, `{"$set":{"a.b":2}}`, `code 28`},
		{`{"_id":1,"a":[{"b":1}]}`, `{"$set":{"a.0.b":2,"a.2":3}}`, `{"_id":1,"a":[{"b":2},null,3]}`},
		{`{"_id":1,"a":[]}`, `{"$set":{"a.99999":3}}`, `code 28`},
		{`{"_id":1,"a":1}`, `{"$set":{"a.b":2}}`, `code 28`},
		{`{"_id":1}`, `{"$set":{"_id":2}}`, `code 66`},
		{`{"_id":1}`, `{"$set":{"_id":1,"a":1}}`, `{"_id":1,"a":1}`},
		{`{"_id":1}`, `{"$set":{"a.$.b":1}}`, `code 2`},
		{`{"_id":1,"a":1,"b":{"c":1}}`, `{"$unset":{"a":"","b.c":"","x.y":""}}`, `{"_id":1,"b":{}}`},
		{`{"_id":1,"a":1}`, `{"$inc":{"a":2,"b":3}}`, `{"_id":1,"a":3,"b":3}`},
		{`{"_id":1,"a":2147483647}`, `{"$inc":{"a":1}}`, `{"_id":1,"a":2147483648}`},
		{`{"_id":1,"a":1}`, `{"$inc":{"a":0.5}}`, `{"_id":1,"a":1.5}`},
		{`{"_id":1,"a":"x"}`, `{"$inc":{"a":1}}`, `code 14`},
		{`{"_id":1,"a":1}`, `{"$inc":{"a":"x"}}`, `code 14`},
		{`{"_id":1,"a":3}`, `{"$mul":{"a":2,"b":3}}`, `{"_id":1,"a":6,"b":0}`},
		{`{"_id":1,"a":3,"b":3}`, `{"$min":{"a":2,"b":4},"$max":{"c":1}}`, `{"_id":1,"a":2,"b":3,"c":1}`},
		{`{"_id":1,"a":1}`, `{"$rename":{"a":"b.c","x":"y"}}`, `{"_id":1,"b":{"c":1}}`},
		{`{"_id":1,"a":[1]}`, `{"$push":{"a":2,"b":{"$each":[1,2]}}}`, `{"_id":1,"a":[1,2],"b":[1,2]}`},
		{`{"_id":1,"a":1}`, `{"$push":{"a":2}}`, `code 2`},
		{`{"_id":1,"a":[1]}`, `{"$addToSet":{"a":1}}`, `{"_id":1,"a":[1]}`},
		{`{"_id":1,"a":[1,2,3]}`, `{"$pull":{"a":{"$gte":2}}}`, `{"_id":1,"a":[1]}`},
		{`{"_id":1}`, `{"$setOnInsert":{"a":1}}`, `{"_id":1}`},
		{`{"_id":1}`, `{"$bit":{"a":1}}`, `code 9`},
		{`{"_id":1}`, `{"$set":1}`, `code 9`},
		{`{"_id":1,"a":1}`, `[{"$set":{"b":"$a"}},{"$unset":"a"}]`, `{"_id":1,"b":1}`},
		{`{"_id":1,"a":{"c":1}}`, `[{"$replaceWith":"$a"}]`, `{"c":1}`},
		{`{"_id":1}`, `[{"$limit":1}]`, `code 40324`},
		{`{"_id":1}`, `[{"$set":{"a":{"$add":[1,2]}}}]`, `code 168`},
		{`{"_id":1}`, `"x"`, `code 9`},
	} {
		out, err := apply(parse(t, test.doc), parseValue(t, test.change), false)
		got := ""
		if err == nil {
			got = show(t, out)
		} else if e := new(Error); errors.As(err, &e) {
			got = fmt.Sprintf("code %d", e.Code)
		}
		if got != test.want {
			t.Errorf("%s on %s: got %s, %v, want %s", test.change, test.doc, got, err, test.want)
		}
	}
}

// TestUpdateStaysInBounds makes documents too deep and too large.
func TestUpdateStaysInBounds(t *testing.T) {
	for _, steps := range []int{179, 180, 1000} {
		path := strings.Repeat("a.", steps) + "a"
		change := parseValue(t, `{"$set":{"`+path+`":1}}`)
		if _, err := apply(parse(t, `{"_id":1}`), change, false); (err == nil) != (steps == 179) {
			t.Errorf("%d steps: %v", steps, err)
		}
	}
	big, err := bson.Marshal(bson.D{{Key: "_id", Value: 1}, {Key: "a", Value: strings.Repeat("x", 16<<20)}})
	if err != nil {
		t.Fatal(err)
	}
	var e *Error
	if err := New(1<<30).View().Insert("db.c", big); !errors.As(err, &e) || e.Code != BSONObjectTooLarge {
		t.Errorf("got %v", err)
	}
	if _, err := apply(big, parseValue(t, `{"$set":{"b":1}}`), false); !errors.As(err, &e) || e.Code != BSONObjectTooLarge {
		t.Errorf("got %v", err)
	}
}

func TestUpsert(t *testing.T) {
	for _, test := range []struct{ filter, change, want string }{
		{`{"_id":5,"a":{"$eq":1},"b":{"$gt":1}}`, `{"$set":{"c":2},"$setOnInsert":{"d":3}}`, `{"_id":5,"a":1,"c":2,"d":3}`},
		{`{"_id":5}`, `{"x":1}`, `{"_id":5,"x":1}`},
		{`{"a":1}`, `{"_id":6,"x":1}`, `{"_id":6,"x":1}`},
		{`{"$or":[{"a":1}],"a.b":1,"_id":7}`, `{"$inc":{"n":2}}`, `{"_id":7,"a":{"b":1},"n":2}`},
	} {
		v := New(1 << 20).View()
		res, err := v.Update("db.c", Update{Filter: parse(t, test.filter), Change: parseValue(t, test.change), Upsert: true})
		if err != nil || res.Upserted.IsZero() {
			t.Fatal(res, err)
		}
		docs, err := v.Find("db.c", Query{})
		if got := showAll(t, docs); err != nil || !sameFields(t, got, test.want) {
			t.Errorf("%s: got %s, %v, want %s", test.filter, got, err, test.want)
		}
	}
}

// sameFields compares two documents apart from the order of their fields.
func sameFields(t *testing.T, a, b string) bool {
	t.Helper()
	x, err := parse(t, a).Elements()
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range x {
		if compare(parse(t, b).Lookup(e.Key()), e.Value()) != 0 {
			return false
		}
	}
	return len(a) == len(b)
}

func TestFind(t *testing.T) {
	v := New(1 << 20).View()
	for i := range 6 {
		if err := v.Insert("db.c", parse(t, fmt.Sprintf(`{"_id":%d,"g":%d,"d":{"x":%d}}`, i, i%2, i))); err != nil {
			t.Fatal(err)
		}
	}
	for _, test := range []struct {
		q    Query
		want string
	}{
		{Query{Limit: 2, Projection: parse(t, `{"_id":1}`)}, `{"_id":0} {"_id":1}`},
		{Query{Skip: 4, Projection: parse(t, `{"_id":1}`)}, `{"_id":4} {"_id":5}`},
		{Query{Skip: 9}, ``},
		{Query{Skip: 1, Limit: 1, Projection: parse(t, `{"d":0}`)}, `{"_id":1,"g":1}`},
		{Query{Filter: parse(t, `{"_id":3}`), Projection: parse(t, `{"_id":0,"g":1}`)}, `{"g":1}`},
		{Query{Filter: parse(t, `{"_id":3.0}`), Projection: parse(t, `{"g":1}`)}, `{"_id":3,"g":1}`},
		{Query{Filter: parse(t, `{"_id":3,"g":0}`)}, ``},
		{Query{Sort: parse(t, `{"g":-1,"d.x":1}`), Limit: 2, Projection: parse(t, `{"_id":1}`)}, `{"_id":1} {"_id":3}`},
		{Query{Sort: parse(t, `{"_id":-1}`), Limit: 1, Projection: parse(t, `{"_id":0,"d":1}`)}, `{"d":{"x":5}}`},
		{Query{Filter: parse(t, `{"_id":5}`), Projection: parse(t, `{"_id":0}`)}, `{"g":1,"d":{"x":5}}`},
	} {
		docs, err := v.Find("db.c", test.q)
		if got := showAll(t, docs); got != test.want || err != nil {
			t.Errorf("got %s, %v, want %s", got, err, test.want)
		}
	}
	for _, q := range []Query{
		{Sort: parse(t, `{"a":"up"}`)},
		{Projection: parse(t, `{"a":1,"b":0}`)},
		{Projection: parse(t, `{"a":{"$slice":1}}`)},
		{Projection: parse(t, `{"a.b":1}`)},
	} {
		if _, err := v.Find("db.c", q); err == nil {
			t.Errorf("%+v was accepted", q)
		}
	}
	if docs, err := v.Find("db.none", Query{}); len(docs) != 0 || err != nil {
		t.Error(docs, err)
	}
}

func TestAggregate(t *testing.T) {
	docs := []bson.Raw{
		parse(t, `{"_id":1,"g":"a","n":1,"l":[1,2]}`), parse(t, `{"_id":2,"g":"b","n":2,"l":[2,3]}`), parse(t, `{"_id":3,"g":"a","n":3}`),
	}
	for _, test := range []struct{ stages, want string }{
		{`[]`, `{"_id":1,"g":"a","n":1,"l":[1,2]} {"_id":2,"g":"b","n":2,"l":[2,3]} {"_id":3,"g":"a","n":3}`},
		{`[{"$match":{"g":"a"}},{"$count":"n"}]`, `{"n":2}`},
		{`[{"$match":{"g":"x"}},{"$count":"n"}]`, ``},
		{`[{"$sort":{"n":-1}},{"$skip":1},{"$limit":1},{"$project":{"n":1}}]`, `{"_id":2,"n":2}`},
		{`[{"$group":{"_id":"$g","s":{"$sum":"$n"},"c":{"$sum":1},"lo":{"$min":"$n"},"hi":{"$max":"$n"}}}]`,
			`{"_id":"a","s":4,"c":2,"lo":1,"hi":3} {"_id":"b","s":2,"c":1,"lo":2,"hi":2}`},
		{`[{"$group":{"_id":null,"all":{"$push":"$n"},"f":{"$first":"$n"},"l":{"$last":"$n"}}}]`, `{"_id":null,"all":[1,2,3],"f":1,"l":3}`},
		{`[{"$limit":1},{"$set":{"m":"$n","k":{"$literal":"$x"}}},{"$unset":["g","l"]}]`, `{"_id":1,"n":1,"m":1,"k":"$x"}`},
		{`[{"$limit":1},{"$replaceRoot":{"newRoot":{"a":1}}}]`, `{"a":1}`},
		{`[{"$limit":0}]`, `code 15958`},
		{`[{"$facet":{}}]`, `code 40324`},
		{`[{"$limit":1,"$skip":1}]`, `code 40323`},
		{`[{"$out":"x"},{"$limit":1}]`, `code 40601`},
		{`[{"$match":1}]`, `code 15959`},
		{`[{"$count":""}]`, `code 40156`},
		{`[{"$group":{"_id":1,"x":{"$stdDev":1}}}]`, `code 15952`},
		{`[{"$group":{"x":{"$sum":1}}}]`, `code 15955`},
		{`[{"$group":{"_id":"$$ROOT"}}]`, `code 168`},
		{`[{"$replaceWith":"$n"}]`, `code 40228`},
		{`[{"$unset":[1]}]`, `code 31002`},
		{`[{"$out":1}]`, `code 16990`},
		{`[{"$out":"a$"}]`, ``},
	} {
		var stages []bson.Raw
		for _, s := range items(parseValue(t, test.stages)) {
			stages = append(stages, s.Document())
		}
		out, err := New(1<<20).View().Aggregate("db", docs, stages)
		got := showAll(t, out)
		if e := new(Error); errors.As(err, &e) {
			got = fmt.Sprintf("code %d", e.Code)
		}
		if got != test.want {
			t.Errorf("%s: got %s, %v, want %s", test.stages, got, err, test.want)
		}
	}
}

func TestOut(t *testing.T) {
	v := New(1 << 20).View()
	for i := range 50 {
		if err := v.Insert("db.old", parse(t, fmt.Sprintf(`{"_id":%d,"old":1}`, i))); err != nil {
			t.Fatal(err)
		}
	}
	docs := []bson.Raw{parse(t, `{"_id":1,"a":1}`), parse(t, `{"_id":2}`)}
	for _, test := range []struct {
		stage string
		want  string
	}{
		{`{"$merge":{"into":"old"}}`, `50 documents`},
		{`{"$out":"old"}`, `{"_id":1,"a":1} {"_id":2}`},
		{`{"$out":{"db":"db","coll":"old"}}`, `{"_id":1,"a":1} {"_id":2}`},
	} {
		if _, err := v.Aggregate("db", docs, []bson.Raw{parse(t, test.stage)}); err != nil {
			t.Fatal(err)
		}
		out, err := v.Find("db.old", Query{})
		got := showAll(t, out)
		if len(out) == 50 {
			got = "50 documents"
		}
		if got != test.want || err != nil {
			t.Errorf("%s: got %s, %v, want %s", test.stage, got, err, test.want)
		}
	}
}

func TestDistinct(t *testing.T) {
	docs := []bson.Raw{parse(t, `{"a":1}`), parse(t, `{"a":1.0}`), parse(t, `{"a":[2,1]}`), parse(t, `{"b":1}`)}
	if got := Distinct(docs, "a"); len(got) != 2 || got[1].AsInt64() != 2 {
		t.Errorf("got %v", got)
	}
}

// TestLimit fills a database, and finds as much room after it was emptied.
func TestLimit(t *testing.T) {
	db := New(10_000)
	fill := func() (n int) {
		for ; ; n++ {
			err := db.View().Insert("db.c", parse(t, fmt.Sprintf(`{"_id":%d,"x":"0123456789"}`, n)))
			if e := new(Error); errors.As(err, &e) && e.Code == OutOfDiskSpace {
				return n
			}
		}
	}
	first := fill()
	if _, _, err := db.View().Delete("db.c", nil, nil, true); err != nil {
		t.Fatal(err)
	}
	again := fill()
	db.DropDatabase("db")
	if third := fill(); first < 10 || again != first || third != first {
		t.Errorf("room for %d, %d and %d documents", first, again, third)
	}
}
