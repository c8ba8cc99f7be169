package suite_test

import (
	"fmt"
	"reflect"
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/mongo/readconcern"
	"go.mongodb.org/mongo-driver/v2/mongo/readpref"
	"go.mongodb.org/mongo-driver/v2/mongo/writeconcern"
)

// A fromArguments is options of the driver that are read from arguments: each argument
// that was not asked for sets the field that has its name.
type fromArguments[T any] struct{ a arguments }

func optionsOf[T any](a arguments) options.Lister[T] { return &fromArguments[T]{a} }

func (f *fromArguments[T]) List() []func(*T) error {
	return []func(*T) error{func(o *T) error {
		for _, e := range must(f.a.raw.Elements()) {
			if f.a.asked[e.Key()] && !f.a.set[e.Key()] {
				continue
			}
			field := fieldNamed(reflect.ValueOf(o).Elem(), e.Key())
			if !field.IsValid() {
				continue // [arguments.all] reports it
			}
			f.a.asked[e.Key()], f.a.set[e.Key()] = true, true
			if err := setField(field, e.Key(), e.Value()); err != nil {
				return err
			}
		}
		return nil
	}}
}

// fieldNamed returns the field of an argument, which may have a unit in its name.
func fieldNamed(o reflect.Value, key string) reflect.Value {
	key = strings.TrimSuffix(key, "MS")
	switch key {
	case "size":
		key = "SizeInBytes"
	case "max":
		if f := o.FieldByName("MaxDocuments"); f.IsValid() {
			return f
		}
	}
	return o.FieldByNameFunc(func(name string) bool { return strings.EqualFold(name, key) })
}

func setField(field reflect.Value, key string, v bson.RawValue) error {
	pointer := func(to any) { field.Set(reflect.ValueOf(to)) }
	switch field.Interface().(type) {
	case *time.Duration:
		d := time.Duration(v.AsInt64()) * time.Millisecond
		pointer(&d)
	case *options.ReturnDocument:
		r := options.Before
		if v.StringValue() == "After" {
			r = options.After
		}
		pointer(&r)
	case *options.CursorType:
		t := map[string]options.CursorType{"nonTailable": options.NonTailable, "tailable": options.Tailable, "tailableAwait": options.TailableAwait}[v.StringValue()]
		pointer(&t)
	case *readconcern.ReadConcern:
		pointer(readConcern(v.Document()))
	case *writeconcern.WriteConcern:
		pointer(concern(v.Document()))
	case *readpref.ReadPref:
		p, err := preference(v.Document())
		if err != nil {
			return err
		}
		pointer(p)
	case []any:
		pointer(list(v))
	default:
		if field.Kind() == reflect.Interface {
			field.Set(reflect.ValueOf(plainValue(v)))
			return nil
		}
		to := reflect.New(field.Type())
		if err := bson.UnmarshalValue(v.Type, v.Value, to.Interface()); err != nil {
			return fmt.Errorf("%s: %w", key, err)
		}
		field.Set(to.Elem())
	}
	return nil
}

// plainValue returns a value as the driver takes it for an option that may be anything.
func plainValue(v bson.RawValue) any {
	if d, ok := v.DocumentOK(); ok {
		return d
	}
	if s, ok := v.StringValueOK(); ok {
		return s
	}
	return v
}

func list(v bson.RawValue) (docs []any) {
	docs = []any{}
	for _, one := range must(v.Array().Values()) {
		docs = append(docs, plainValue(one))
	}
	return docs
}

func readConcern(doc bson.Raw) *readconcern.ReadConcern {
	level, _ := doc.Lookup("level").StringValueOK()
	return &readconcern.ReadConcern{Level: level}
}

func preference(doc bson.Raw) (*readpref.ReadPref, error) {
	mode, err := readpref.ModeFromString(doc.Lookup("mode").StringValue())
	if err != nil {
		return nil, err
	}
	return readpref.New(mode)
}

// sessionOptions reads the session options of an entity.
func sessionOptions(doc bson.Raw) (*options.SessionOptionsBuilder, error) {
	o := options.Session()
	if len(doc) == 0 {
		return o, nil
	}
	for _, e := range must(doc.Elements()) {
		switch e.Key() {
		case "causalConsistency":
			o.SetCausalConsistency(e.Value().Boolean())
		case "snapshot":
			o.SetSnapshot(e.Value().Boolean())
		case "defaultTransactionOptions":
			a := arguments{raw: e.Value().Document(), asked: map[string]bool{}, set: map[string]bool{}}
			var t options.TransactionOptions
			for _, f := range optionsOf[options.TransactionOptions](a).List() {
				if err := f(&t); err != nil {
					return nil, err
				}
			}
			if err := a.all("defaultTransactionOptions"); err != nil {
				return nil, err
			}
			o.SetDefaultTransactionOptions(&options.TransactionOptionsBuilder{Opts: []func(*options.TransactionOptions) error{
				func(to *options.TransactionOptions) error { *to = t; return nil },
			}})
		default:
			return nil, fmt.Errorf("the runner has no %s in sessionOptions", e.Key())
		}
	}
	return o, nil
}

// databaseOptions reads the database options of an entity.
func databaseOptions(doc bson.Raw) (*options.DatabaseOptionsBuilder, error) {
	c, err := collectionOptions(doc)
	if err != nil {
		return nil, err
	}
	var from options.CollectionOptions
	for _, f := range c.List() {
		if err := f(&from); err != nil {
			return nil, err
		}
	}
	return options.Database().SetReadConcern(from.ReadConcern).SetWriteConcern(from.WriteConcern).SetReadPreference(from.ReadPreference), nil
}

// collectionOptions reads the collection options of an entity.
func collectionOptions(doc bson.Raw) (*options.CollectionOptionsBuilder, error) {
	o := options.Collection()
	if len(doc) == 0 {
		return o, nil
	}
	for _, e := range must(doc.Elements()) {
		switch e.Key() {
		case "readConcern":
			o.SetReadConcern(readConcern(e.Value().Document()))
		case "writeConcern":
			o.SetWriteConcern(concern(e.Value().Document()))
		case "readPreference":
			p, err := preference(e.Value().Document())
			if err != nil {
				return nil, err
			}
			o.SetReadPreference(p)
		case "timeoutMS":
			return nil, fmt.Errorf("the driver has no timeoutMS of a database or a collection")
		default:
			return nil, fmt.Errorf("the runner has no %s in options of an entity", e.Key())
		}
	}
	return o, nil
}
