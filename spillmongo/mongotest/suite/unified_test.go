package suite_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/event"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/seed90641741/spillway/spillmongo"
	"github.com/seed90641741/spillway/spillmongo/mongotest"
)

// unifiedFiles are tests in MongoDB's unified test format. They are kept beside the
// project, as their licence is not the project's.
const unifiedFiles = "../../../../shared/conformance/mongodb"

// unifiedEnv names further directories of such files, as PATH does.
const unifiedEnv = "SPILLMONGO_UNIFIED"

// A unifiedFile is one file of tests.
type unifiedFile struct {
	Schema      string `bson:"schemaVersion"`
	Description string
	RunOn       []requirement `bson:"runOnRequirements"`
	Entities    []bson.D      `bson:"createEntities"`
	InitialData []collData    `bson:"initialData"`
	Tests       []unifiedCase
}

type unifiedCase struct {
	Description string
	SkipReason  string        `bson:"skipReason"`
	RunOn       []requirement `bson:"runOnRequirements"`
	Operations  []operation
	Events      []struct {
		Client      string
		EventType   string `bson:"eventType"`
		Events      []bson.D
		IgnoreExtra bool `bson:"ignoreExtraEvents"`
	} `bson:"expectEvents"`
	Messages []struct {
		Client      string
		Messages    []bson.Raw
		Ignore      []bson.Raw `bson:"ignoreMessages"`
		IgnoreExtra bool       `bson:"ignoreExtraMessages"`
	} `bson:"expectLogMessages"`
	Outcome []collData
}

type requirement struct {
	Topologies []string
	Min        string `bson:"minServerVersion"`
	Max        string `bson:"maxServerVersion"`
	Auth       *bool
	CSFLE      any
	Serverless string
}

type collData struct {
	Collection string `bson:"collectionName"`
	Database   string `bson:"databaseName"`
	Documents  []bson.D
}

type operation struct {
	Name      string
	Object    string
	Arguments bson.Raw
	Error     *expectedError `bson:"expectError"`
	Result    bson.RawValue  `bson:"expectResult"`
	Save      string         `bson:"saveResultAsEntity"`
	Ignore    bool           `bson:"ignoreResultAndError"`
}

type expectedError struct {
	IsClient   *bool    `bson:"isClientError"`
	IsTimeout  *bool    `bson:"isTimeoutError"`
	Contains   string   `bson:"errorContains"`
	Code       *int     `bson:"errorCode"`
	CodeName   string   `bson:"errorCodeName"`
	Labels     []string `bson:"errorLabelsContain"`
	LabelsOmit []string `bson:"errorLabelsOmit"`
}

// topologies are what each file is run against, by their names in the format.
var topologies = map[string]mongotest.Config{
	"replicaset":    {Pipes: true, Nodes: 2},
	"sharded":       {Pipes: true, Topology: mongotest.Sharded},
	"load-balanced": {Pipes: true, Topology: mongotest.LoadBalanced},
	"single":        {Pipes: true, Topology: mongotest.Standalone},
}

func (r requirement) met(topology string) bool {
	name := func(s string) bool { return s == topology || s == "sharded-replicaset" && topology == "sharded" }
	var major, minor int
	_, _ = fmt.Sscanf(r.Min, "%d.%d", &major, &minor)
	return r.Max == "" && (major < 8 || major == 8 && minor <= 2) && (r.CSFLE == nil || r.CSFLE == false) && r.Serverless != "require" &&
		(r.Auth == nil || !*r.Auth) && (len(r.Topologies) == 0 || slices.ContainsFunc(r.Topologies, name))
}

func met(all []requirement, topology string) bool {
	return len(all) == 0 || slices.ContainsFunc(all, func(r requirement) bool { return r.met(topology) })
}

// TestUnified runs the tests of the specification, each in virtual time and against
// each topology that it is for.
func TestUnified(t *testing.T) {
	var files []string
	for _, dir := range append([]string{unifiedFiles}, filepath.SplitList(os.Getenv(unifiedEnv))...) {
		filepath.WalkDir(dir, func(path string, _ os.DirEntry, err error) error {
			if err == nil && strings.HasSuffix(path, ".json") {
				files = append(files, path)
			}
			return nil
		})
	}
	if len(files) == 0 {
		t.Skipf("no test files in %s: they are not part of the project", unifiedFiles)
	}
	ran, skipped := 0, new(skips)
	for _, path := range files {
		var file unifiedFile
		if err := bson.UnmarshalExtJSON(must(os.ReadFile(path)), false, &file); err != nil || file.Schema == "" {
			t.Logf("%s is not in the unified format: %v", path, err)
			continue
		}
		for _, c := range file.Tests {
			name, on := file.Description+"/"+c.Description, 0
			if c.SkipReason != "" {
				skipped.add(fileSays+c.SkipReason, name)
				continue
			}
			for topology, config := range topologies {
				if !met(file.RunOn, topology) || !met(c.RunOn, topology) {
					continue
				}
				on++
				t.Run(file.Description+"/"+topology+"/"+c.Description, func(t *testing.T) {
					u := new(unified)
					bubble(t, func(t *testing.T) { u.run(t, config, &file, &c) })
					if reason := u.reason.Load(); reason != nil {
						skipped.add(*reason, name)
						t.SkipNow()
					}
					ran++
				})
			}
			if on == 0 {
				skipped.add(needsServer+"what runOnRequirements ask for", name)
			}
		}
	}
	skipped.report(t, ran)
	if n := skipped.ofRunner(); n > 0 && os.Getenv(unifiedEnv) == "" {
		t.Errorf("%d cases are skipped for what the runner lacks", n)
	}
}

// A unified is one running test.
type unified struct {
	t        *testing.T
	d        *mongotest.Deployment
	ctx      context.Context
	clients  map[string]*unifiedClient
	entities map[string]any
	reason   atomic.Pointer[string] // why the test was skipped
}

// A unifiedClient is a client, and what it has observed.
type unifiedClient struct {
	*mongo.Client

	mu       sync.Mutex
	command  []any
	pool     []any
	servers  []any
	out      int // connections that are checked out
	topology event.TopologyDescription
	messages []logMessage
	recorder recorder
	retrier  *spillmongo.Retrier
}

// longest is how long a case may take, in the time of its bubble.
const longest = 10 * time.Minute

func (u *unified) run(t *testing.T, config mongotest.Config, file *unifiedFile, c *unifiedCase) {
	u.t, u.clients, u.entities = t, map[string]*unifiedClient{}, map[string]any{}
	u.d = mongotest.Start(t, config)
	var cancel context.CancelFunc
	u.ctx, cancel = context.WithCancel(t.Context())
	defer cancel()
	guard := time.AfterFunc(longest, func() {
		t.Errorf("the case takes longer than %v", longest)
		cancel()
	})
	defer guard.Stop()
	u.insert(file.InitialData)
	for _, e := range file.Entities {
		u.create(e)
	}
	for i := range c.Operations {
		u.operate(&c.Operations[i])
	}
	for _, want := range c.Events {
		u.expectEvents(want.Client, want.EventType, want.Events, want.IgnoreExtra)
	}
	for _, want := range c.Messages {
		u.expectMessages(want.Client, want.Messages, want.Ignore, want.IgnoreExtra)
	}
	for _, e := range u.entities {
		switch e := e.(type) {
		case *mongo.Session:
			e.EndSession(u.ctx)
		case cursor:
			_ = e.Close(u.ctx)
		}
	}
	for _, client := range u.clients {
		client.recorder.take(t, "")
	}
	for _, want := range c.Outcome {
		u.expectOutcome(want)
	}
}

// plain returns a client that the test does not observe.
func (u *unified) plain() *mongo.Client {
	client := must(mongo.Connect(u.d.Options()))
	u.t.Cleanup(func() { client.Disconnect(context.Background()) })
	return client
}

func (u *unified) insert(data []collData) {
	for _, d := range data {
		db := u.plain().Database(d.Database)
		if len(d.Documents) == 0 {
			db.CreateCollection(u.ctx, d.Collection)
			continue
		}
		must(db.Collection(d.Collection).InsertMany(u.ctx, d.Documents))
	}
}

func (u *unified) expectOutcome(want collData) {
	cur := must(u.plain().Database(want.Database).Collection(want.Collection).Find(u.ctx, bson.D{}, options.Find().SetSort(bson.D{{Key: "_id", Value: 1}})))
	var got []bson.D
	if err := cur.All(u.ctx, &got); err != nil {
		u.t.Fatal(err)
	}
	if g, w := fmt.Sprint(got), fmt.Sprint(want.Documents); g != w {
		u.t.Errorf("%s holds %s, want %s", want.Collection, g, w)
	}
}

// create makes an entity of the description {kind: {id: …, …}}.
func (u *unified) create(d bson.D) {
	type description struct {
		ID, Client, Database string
		DatabaseName         string `bson:"databaseName"`
		CollectionName       string `bson:"collectionName"`
		Observe              []string
		ObserveEvents        []string `bson:"observeEvents"`
		IgnoreCommands       []string `bson:"ignoreCommandMonitoringEvents"`
		URI                  bson.D   `bson:"uriOptions"`
		Collection           bson.Raw `bson:"collectionOptions"`
		DB                   bson.Raw `bson:"databaseOptions"`
		Session              bson.Raw `bson:"sessionOptions"`
		Bucket               bson.Raw `bson:"bucketOptions"`
		API                  *struct {
			Version string
			Strict  *bool
			Errors  *bool `bson:"deprecationErrors"`
		} `bson:"serverApi"`
		Logs map[string]string `bson:"observeLogMessages"`
	}
	var e description
	data := must(bson.Marshal(d[0].Value))
	if err := bson.Unmarshal(data, &e); err != nil {
		u.t.Fatal(err)
	}
	if _, err := bson.Raw(data).LookupErr("autoEncryptOpts"); err == nil {
		u.skip(needsDriver + "encryption without libmongocrypt")
	}
	switch kind := d[0].Key; kind {
	case "client":
		u.clients[e.ID] = u.connect(e.URI, e.ObserveEvents, e.IgnoreCommands, e.Logs, func(o *options.ClientOptions) {
			if e.API != nil {
				o.SetServerAPIOptions(&options.ServerAPIOptions{
					ServerAPIVersion: options.ServerAPIVersion(e.API.Version), Strict: e.API.Strict, DeprecationErrors: e.API.Errors,
				})
			}
		})
		u.entities[e.ID] = u.clients[e.ID].Client
	case "database":
		u.entities[e.ID] = u.clients[e.Client].Database(e.DatabaseName, checked(u, databaseOptions, e.DB))
	case "collection":
		u.entities[e.ID] = u.entities[e.Database].(*mongo.Database).Collection(e.CollectionName, checked(u, collectionOptions, e.Collection))
	case "session":
		u.entities[e.ID] = must(u.clients[e.Client].StartSession(checked(u, sessionOptions, e.Session)))
	case "bucket":
		if e.Bucket == nil {
			e.Bucket = bson.Raw{5, 0, 0, 0, 0}
		}
		a := arguments{raw: e.Bucket, asked: map[string]bool{}, set: map[string]bool{}}
		u.entities[e.ID] = u.entities[e.Database].(*mongo.Database).GridFSBucket(bucketOptions(a))
		if err := a.all("bucketOptions"); err != nil {
			u.skip(err.Error())
		}
	case "thread":
		u.entities[e.ID] = u.thread()
	default:
		u.skip(needsRunner + "entity of kind " + kind)
	}
}

// checked returns options of an entity, or skips the test.
func checked[T any](u *unified, read func(bson.Raw) (T, error), doc bson.Raw) T {
	o, err := read(doc)
	if err != nil {
		u.skip(err.Error())
	}
	return o
}

// connect returns a client with a policy. Its options are given in the URI, as the
// format has it.
func (u *unified) connect(uri bson.D, observe, ignore []string, logs map[string]string, more func(*options.ClientOptions)) *unifiedClient {
	c := new(unifiedClient)
	query := u.d.URI()
	for _, o := range uri {
		if slices.Contains([]string{"socketTimeoutMS", "wTimeoutMS", "waitQueueTimeoutMS"}, o.Key) {
			u.skip(needsDriver + o.Key)
		}
		sep := "&"
		if !strings.Contains(query, "?") {
			sep = "?"
		}
		query += fmt.Sprintf("%s%s=%v", sep, o.Key, o.Value)
	}
	o := u.d.Options().ApplyURI(query).SetMonitor(c.monitor(observe, append(ignore, "configureFailPoint")))
	c.watch(o, observe)
	if len(logs) > 0 {
		o.SetLoggerOptions(c.logger(logs))
	}
	more(o)
	if os.Getenv("SPILLMONGO_PLAIN") != "" {
		c.retrier, c.Client = new(spillmongo.Retrier), must(mongo.Connect(o)) // to see what the driver does by itself
	} else {
		c.retrier = must(spillmongo.New(o, spillmongo.Config{Revision: os.Getenv("SPILLMONGO_REVISION")}))
		c.Client = must(mongo.Connect(c.retrier.ClientOptions()))
	}
	u.t.Cleanup(func() {
		if err := c.Disconnect(context.Background()); err != nil && !errors.Is(err, mongo.ErrClientDisconnected) {
			u.t.Error(err)
		}
	})
	return c
}

func (c *unifiedClient) monitor(observe, ignore []string) *event.CommandMonitor {
	add := func(kind, name string, e any) {
		if slices.Contains(observe, kind) && !slices.Contains(ignore, name) {
			c.mu.Lock()
			c.command = append(c.command, e)
			c.mu.Unlock()
		}
	}
	own := c.recorder.monitor()
	return &event.CommandMonitor{
		Started: func(ctx context.Context, e *event.CommandStartedEvent) {
			own.Started(ctx, e)
			add("commandStartedEvent", e.CommandName, e)
		},
		Succeeded: func(ctx context.Context, e *event.CommandSucceededEvent) {
			own.Succeeded(ctx, e)
			add("commandSucceededEvent", e.CommandName, e)
		},
		Failed: func(ctx context.Context, e *event.CommandFailedEvent) {
			own.Failed(ctx, e)
			add("commandFailedEvent", e.CommandName, e)
		},
	}
}

func (u *unified) operate(op *operation) {
	got, err := u.do(op)
	if err != nil && (strings.HasPrefix(err.Error(), needsRunner) || strings.HasPrefix(err.Error(), needsDriver)) {
		u.skip(err.Error())
	}
	switch {
	case op.Ignore:
	case op.Error != nil:
		u.expectError(op, err)
	case err != nil:
		u.t.Fatalf("%s: %v", op.Name, err)
	case op.Result.Type != 0:
		if why := u.match(op.Result, value(result(got)), true); why != "" {
			u.t.Errorf("%s returned %v: %s", op.Name, got, why)
		}
	}
	if op.Save != "" {
		u.entities[op.Save] = got
	}
}

func (u *unified) expectError(op *operation, err error) {
	if err == nil {
		u.t.Fatalf("%s succeeded", op.Name)
	}
	want := op.Error
	var server mongo.ServerError
	var labeled mongo.LabeledError
	isServer := errors.As(err, &server) && !mongo.IsNetworkError(err)
	if want.IsClient != nil && *want.IsClient == isServer {
		u.t.Errorf("%s: client error wanted: %v; got %v", op.Name, *want.IsClient, err)
	}
	if want.IsTimeout != nil && *want.IsTimeout != mongo.IsTimeout(err) {
		u.t.Errorf("%s: timeout wanted: %v; got %v", op.Name, *want.IsTimeout, err)
	}
	if !strings.Contains(strings.ToLower(err.Error()), strings.ToLower(want.Contains)) {
		u.t.Errorf("%s: %v, want an error with %q", op.Name, err, want.Contains)
	}
	if want.Code != nil && (!isServer || !server.HasErrorCode(*want.Code)) {
		u.t.Errorf("%s: %v, want code %d", op.Name, err, *want.Code)
	}
	errors.As(err, &labeled)
	for _, l := range want.Labels {
		if labeled == nil || !labeled.HasErrorLabel(l) {
			u.t.Errorf("%s: %v lacks the label %s", op.Name, err, l)
		}
	}
	for _, l := range want.LabelsOmit {
		if labeled != nil && labeled.HasErrorLabel(l) {
			u.t.Errorf("%s: %v has the label %s", op.Name, err, l)
		}
	}
}

// expectEvents compares what a client observed, in order.
func (u *unified) expectEvents(client, kind string, want []bson.D, extra bool) {
	c := u.clients[client]
	c.mu.Lock()
	defer c.mu.Unlock()
	got := c.command
	switch kind {
	case "cmap":
		got = c.pool
	case "sdam":
		got = c.servers
	case "", "command":
	default:
		u.skip(needsRunner + "events of type " + kind)
	}
	names := make([]string, len(got))
	for i := range got {
		names[i] = eventName(got[i])
	}
	if len(got) < len(want) || len(got) > len(want) && !extra {
		u.t.Fatalf("%d events, want %d: %v", len(got), len(want), names)
	}
	for i, w := range want {
		if why := u.matchEvent(w[0], got[i]); why != "" {
			u.t.Errorf("event %d, %s: %s", i, names[i], why)
		}
	}
}
