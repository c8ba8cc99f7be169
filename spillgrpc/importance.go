package spillgrpc

import (
	"context"
	"strconv"
	"sync/atomic"

	"google.golang.org/grpc/metadata"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/internal/claims"
)

// importance is what the metadata of an attempt say of how much it matters. The zero importance says nothing.
type importance struct {
	class    spillway.Criticality // if labelled
	labelled bool
	level    spillway.Level
	progress spillway.Progress // says nothing without a level
}

// importanceOf returns what an attempt says of itself by its context and its task. External services get nothing.
func importanceOf(ctx context.Context, task *spillway.Task, external bool) (i importance) {
	if external {
		return i
	}
	if c, labelled := spillway.LookupCriticality(ctx); labelled && c.Valid() {
		i.class, i.labelled = c, true
	}
	if i.level = task.Level(); i.level > 0 {
		i.progress = task.Progress()
	}
	return i
}

// shared are the metadata of attempts that say nothing but their importance, by class (the last: none), level and progress. Each is
// made when it is first needed. grpc reads what it sends, and a caller that asks for the metadata of a context gets a copy.
var shared [spillway.Criticalities + 1][spillway.Levels + 1][sharedProgress]atomic.Pointer[metadata.MD]

// sharedProgress is from which progress on metadata are not shared: few tasks have more calls.
const sharedProgress = 16

// metadata returns metadata that say i and nothing else. They must not be changed.
func (i importance) metadata() metadata.MD {
	if i.progress >= sharedProgress {
		return i.make()
	}
	class := spillway.Criticalities
	if i.labelled {
		class = i.class.Index()
	}
	place := &shared[class][i.level][i.progress]
	if md := place.Load(); md != nil {
		return *md
	}
	md := i.make()
	place.Store(&md)
	return md
}

func (i importance) make() metadata.MD {
	md := make(metadata.MD, 4)
	i.label(md)
	if i.labelled {
		baggage, _ := claims.ReplaceBaggage(nil, i.class, true, i.level)
		claims.Put(md, keyBaggage, baggage)
	}
	return md
}

// label puts class, level and progress into md, if i says them.
func (i importance) label(md metadata.MD) {
	if i.labelled {
		md[keyCriticality] = claims.Labels[i.class.Index()]
	}
	if i.level > 0 {
		md[keyLevel] = claims.LevelValues[i.level]
		claims.Put(md, keyProgress, claims.ProgressValues[i.progress])
	}
}

// dress returns the context for an attempt, with metadata for the criticality, if ctx or the
// caller sets one, also as baggage, for level and progress of its task, and for the attempt number. External services get none of
// these. An attempt number that the caller has set is removed.
func dress(ctx context.Context, task *spillway.Task, number int, external bool) context.Context {
	i := importanceOf(ctx, task, external)
	if external {
		number = 0
	}
	switch {
	case ctx.Value(outgoingKey) != nil:
		return redress(ctx, i, number, external)
	case number > 0:
		md := i.make()
		md[keyAttempts] = []string{strconv.Itoa(number)}
		return metadata.NewOutgoingContext(ctx, md)
	case i != importance{}:
		return metadata.NewOutgoingContext(ctx, i.metadata())
	default:
		return ctx
	}
}

// redress is dress for a context that has metadata, whose class counts.
func redress(ctx context.Context, i importance, number int, external bool) context.Context {
	has := func(key string) bool { return len(metadata.ValueFromOutgoingContext(ctx, key)) > 0 }
	baggage, newBaggage := outgoingBaggage(ctx, i, external)
	i.labelled = i.labelled && !has(keyCriticality)
	foreign := external && (has(keyCriticality) || has(keyLevel) || has(keyProgress))
	if !i.labelled && i.level == 0 && !newBaggage && !foreign && number == 0 && !has(keyAttempts) {
		return ctx
	}
	md, _ := metadata.FromOutgoingContext(ctx) // a copy
	delete(md, keyAttempts)
	if newBaggage {
		claims.Put(md, keyBaggage, baggage)
	}
	if external {
		delete(md, keyCriticality)
		delete(md, keyLevel)
		delete(md, keyProgress)
	}
	i.label(md)
	if number > 0 {
		md[keyAttempts] = []string{strconv.Itoa(number)}
	}
	return metadata.NewOutgoingContext(ctx, md)
}

// outgoingKey is the key under which package metadata has outgoing metadata in a context.
var outgoingKey = func() (key any) {
	metadata.FromOutgoingContext(spy{context.Background(), &key})
	return key
}()

// outgoingBaggage returns what the baggage of an attempt is to be, and whether it is
// another than that of ctx.
func outgoingBaggage(ctx context.Context, i importance, external bool) (values []string, changes bool) {
	if !external && !i.labelled {
		return nil, false
	}
	return claims.ReplaceBaggage(metadata.ValueFromOutgoingContext(ctx, keyBaggage), i.class, !external, i.level)
}
