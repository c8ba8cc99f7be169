package mongotune

import (
	"context"
	"fmt"
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
)

// exemptions is the parameter with the applications that the limiter of requests leaves
// alone.
const exemptions = "ingressRequestRateLimiterApplicationExemptions"

// An exemption is what was found there.
type exemption struct {
	database *mongo.Database
	found    bson.A // nil: nothing was changed
}

func (x *exemption) begin(ctx context.Context, c ControllerConfig) error {
	if c.AppName == "" {
		return nil
	}
	x.database = c.Client.Database("admin")
	doc, err := x.database.RunCommand(ctx, bson.D{{Key: "getParameter", Value: 1}, {Key: exemptions, Value: 1}}).Raw()
	if err != nil {
		return err
	}
	found, err := appNames(doc.Lookup(exemptions))
	if err != nil || slices.Contains(found, any(c.AppName)) {
		return err
	}
	if err := x.set(ctx, append(slices.Clone(found), c.AppName)); err != nil {
		return err
	}
	x.found = found
	return nil
}

// appNames returns the names in an answer to getParameter. A server answers with a list, or with null if it was
// never told one; setParameter takes a document around the list, which may be in an answer as well. Anything
// else is an error, as what is not understood must not be overwritten.
func appNames(v bson.RawValue) (names bson.A, err error) {
	names = bson.A{}
	if doc, ok := v.DocumentOK(); ok {
		if err := doc.Validate(); err != nil {
			return nil, err
		}
		v = doc.Lookup("appNames")
	}
	if v.IsZero() || v.Type == bson.TypeNull {
		return names, nil
	}
	list, ok := v.ArrayOK()
	if !ok {
		return nil, fmt.Errorf("mongotune: %s is %s, want a list", exemptions, v.Type)
	}
	values, err := list.Values()
	if err != nil {
		return nil, err
	}
	for _, v := range values {
		name, ok := v.StringValueOK()
		if !ok {
			return nil, fmt.Errorf("mongotune: %s has %s in its list, want strings", exemptions, v.Type)
		}
		names = append(names, name)
	}
	return names, nil
}

func (x *exemption) end(ctx context.Context) error {
	if x.found == nil {
		return nil
	}
	return x.set(ctx, x.found)
}

func (x *exemption) set(ctx context.Context, names bson.A) error {
	value := bson.D{{Key: "appNames", Value: names}}
	return x.database.RunCommand(ctx, bson.D{{Key: "setParameter", Value: 1}, {Key: exemptions, Value: value}}).Err()
}
