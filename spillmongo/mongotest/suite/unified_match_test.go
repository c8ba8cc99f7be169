package suite_test

import (
	"fmt"
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/event"
	"go.mongodb.org/mongo-driver/v2/mongo"
)

// value returns v as BSON.
func value(v any) bson.RawValue {
	kind, data, err := bson.MarshalValue(v)
	if err != nil {
		return bson.RawValue{}
	}
	return bson.RawValue{Type: kind, Value: data}
}

// document returns doc, or an empty one for one that was left out of an event.
func document(doc bson.Raw) any {
	if len(doc) == 0 {
		return bson.D{}
	}
	return doc
}

func eventName(e any) string {
	switch e := e.(type) {
	case *event.CommandStartedEvent:
		return "commandStartedEvent of " + e.CommandName
	case *event.CommandSucceededEvent:
		return "commandSucceededEvent of " + e.CommandName
	case *event.CommandFailedEvent:
		return "commandFailedEvent of " + e.CommandName
	case *event.PoolEvent:
		name := strings.Replace(e.Type, "ConnectionPool", "pool", 1)
		return strings.ToLower(name[:1]) + name[1:] + "Event"
	default:
		name := strings.TrimPrefix(fmt.Sprintf("%T", e), "*event.")
		return strings.ToLower(name[:1]) + name[1:]
	}
}

// matchEvent says why an event is not the one that is wanted.
func (u *unified) matchEvent(want bson.E, got any) string {
	if kind, _, _ := strings.Cut(eventName(got), " "); !strings.EqualFold(kind, want.Key) {
		return "want " + want.Key
	}
	var seen bson.D
	field := func(key string, v any) { seen = append(seen, bson.E{Key: key, Value: v}) }
	command := func(name, database string, server *int64, service *bson.ObjectID) {
		field("commandName", name)
		field("databaseName", database)
		field("hasServerConnectionId", server != nil)
		field("hasServiceId", service != nil)
	}
	switch e := got.(type) {
	case *event.CommandStartedEvent:
		command(e.CommandName, e.DatabaseName, e.ServerConnectionID, e.ServiceID)
		field("command", document(e.Command))
	case *event.CommandSucceededEvent:
		command(e.CommandName, e.DatabaseName, e.ServerConnectionID, e.ServiceID)
		field("reply", document(e.Reply))
	case *event.CommandFailedEvent:
		command(e.CommandName, e.DatabaseName, e.ServerConnectionID, e.ServiceID)
	case *event.PoolEvent:
		field("hasServiceId", e.ServiceID != nil)
		field("reason", e.Reason)
		if e.Type == event.ConnectionPoolCleared {
			field("interruptInUseConnections", e.Interruption)
		}
	case *event.ServerDescriptionChangedEvent:
		field("previousDescription", bson.D{{Key: "type", Value: e.PreviousDescription.Kind}})
		field("newDescription", bson.D{{Key: "type", Value: e.NewDescription.Kind}})
	case *event.TopologyDescriptionChangedEvent:
		field("previousDescription", bson.D{{Key: "type", Value: e.PreviousDescription.Kind}})
		field("newDescription", bson.D{{Key: "type", Value: e.NewDescription.Kind}})
	case *event.ServerHeartbeatStartedEvent:
		field("awaited", e.Awaited)
	case *event.ServerHeartbeatSucceededEvent:
		field("awaited", e.Awaited)
	case *event.ServerHeartbeatFailedEvent:
		field("awaited", e.Awaited)
	}
	for _, w := range must(bson.Raw(value(want.Value).Value).Elements()) {
		g, err := bson.Raw(value(seen).Value).LookupErr(w.Key())
		match := u.matchField
		if w.Key() == "command" || w.Key() == "reply" { // each is a root of its own
			match = func(want, got bson.RawValue, _ bool) string { return u.match(want, got, true) }
		}
		if why := match(w.Value(), g, err == nil); why != "" {
			return w.Key() + ": " + why
		}
	}
	return ""
}

// match says why got is not what is wanted, by the rules of the format. A document
// at the root may have more keys than are wanted.
func (u *unified) match(want, got bson.RawValue, root bool) string {
	if w, ok := want.DocumentOK(); ok {
		return u.matchDocument(w, got, root)
	}
	if w, ok := want.ArrayOK(); ok {
		g, ok := got.ArrayOK()
		if !ok {
			return fmt.Sprintf("%v is no array", got)
		}
		return u.matchArray(must(w.Values()), must(g.Values()), root)
	}
	if w, ok := want.AsFloat64OK(); ok {
		if g, ok := got.AsFloat64OK(); ok && g == w {
			return ""
		}
	} else if want.Equal(got) {
		return ""
	}
	return fmt.Sprintf("%v, want %v", got, want)
}

func (u *unified) matchArray(want, got []bson.RawValue, root bool) string {
	if len(want) != len(got) {
		return fmt.Sprintf("%d elements, want %d", len(got), len(want))
	}
	for i := range want {
		if why := u.match(want[i], got[i], root); why != "" {
			return fmt.Sprintf("element %d: %s", i, why)
		}
	}
	return ""
}

func (u *unified) matchDocument(want bson.Raw, got bson.RawValue, root bool) string {
	elements := must(want.Elements())
	if len(elements) == 1 && strings.HasPrefix(elements[0].Key(), "$$") {
		return u.matchOperator(elements[0], got)
	}
	g, ok := got.DocumentOK()
	if !ok {
		return fmt.Sprintf("%v is no document", got)
	}
	var keys []string
	for _, e := range elements {
		v, err := g.LookupErr(e.Key())
		if err != nil {
			v = bson.RawValue{}
		}
		if why := u.matchField(e.Value(), v, err == nil); why != "" {
			return e.Key() + ": " + why
		}
		keys = append(keys, e.Key())
	}
	for _, e := range must(g.Elements()) {
		if !root && !slices.Contains(keys, e.Key()) {
			return e.Key() + " is not wanted"
		}
	}
	return ""
}

func (u *unified) matchField(want, got bson.RawValue, there bool) string {
	d, _ := want.DocumentOK()
	if v, err := d.LookupErr("$$exists"); err == nil {
		if b, _ := v.BooleanOK(); b != there {
			return fmt.Sprintf("existence %v wanted", b)
		}
		return ""
	}
	if _, err := d.LookupErr("$$unsetOrMatches"); !there {
		if err == nil {
			return ""
		}
		return "missing"
	}
	return u.match(want, got, false)
}

func (u *unified) matchOperator(op bson.RawElement, got bson.RawValue) string {
	switch op.Key() {
	case "$$unsetOrMatches":
		if got.Type == 0 || got.Type == bson.TypeNull {
			return ""
		}
		return u.match(op.Value(), got, true)
	case "$$type":
		names := map[bson.Type][]string{
			bson.TypeInt32: {"int", "number"}, bson.TypeInt64: {"long", "number"}, bson.TypeDouble: {"double", "number"},
			bson.TypeString: {"string"}, bson.TypeEmbeddedDocument: {"object"}, bson.TypeArray: {"array"}, bson.TypeBoolean: {"bool"},
			bson.TypeBinary: {"binData"}, bson.TypeObjectID: {"objectId"}, bson.TypeDateTime: {"date"}, bson.TypeTimestamp: {"timestamp"},
		}[got.Type]
		text := op.Value().String()
		if slices.ContainsFunc(names, func(n string) bool { return strings.Contains(text, `"`+n+`"`) }) {
			return ""
		}
		return fmt.Sprintf("%v is not of type %s", got, text)
	case "$$sessionLsid":
		s, ok := u.entities[op.Value().StringValue()].(*mongo.Session)
		if d, isDoc := got.DocumentOK(); ok && isDoc && string(d) == string(s.ID()) {
			return ""
		}
		return "another session"
	case "$$exists":
		return ""
	case "$$matchesEntity":
		return u.match(value(u.entities[op.Value().StringValue()]), got, true)
	case "$$matchesHexBytes":
		if b, ok := got.Value, got.Type == bson.TypeBinary; !ok || fmt.Sprintf("%x", b[5:]) != op.Value().StringValue() {
			return fmt.Sprintf("%v is not %v", got, op.Value())
		}
		return ""
	case "$$lte":
		want, _ := op.Value().AsFloat64OK()
		if g, ok := got.AsFloat64OK(); !ok || g > want {
			return fmt.Sprintf("%v is not at most %v", got, want)
		}
		return ""
	case "$$matchAsRoot":
		return u.match(op.Value(), got, true)
	case "$$matchAsDocument":
		var doc bson.Raw
		text, _ := got.StringValueOK()
		if err := bson.UnmarshalExtJSON([]byte(text), false, &doc); err != nil {
			return fmt.Sprintf("%q is no document: %v", text, err)
		}
		return u.match(op.Value(), value(doc), false)
	default:
		u.skip(needsRunner + "operator " + op.Key())
		return ""
	}
}
