package archtest

// A level is a layer of the architecture; a package may import lower ones only.
type level int

const (
	words       level = iota // what all share
	helpers                  // what policies share, made of words
	policies                 // one decision each
	cores                    // what stacks and the simulator share, made of policies
	stacks                   // policies in their order
	reports                  // what adapters share that read the figures of stacks
	pages                    // what shows the reports to operators
	edges                    // adapters, the simulator, the test kits
	programs                 // everything with a main package
	comparisons              // programs made of another one
)

var levelNames = [...]string{"L0 words", "L0 helpers", "L1 policies", "L2 cores", "L2 stacks", "L2 reports", "L2 pages", "L3 edges", "L4 programs", "L5 comparisons"}

func (l level) String() string { return levelNames[l] }

// A row says what one package of the root module, or another module as a
// whole, may do.
type row struct {
	level level
	// kit says that tests of every level may import it.
	kit bool
	// hosts are the path prefixes of the one library that an adapter is for.
	hosts []string
	// tree says that the row is of all packages below the directory, too: boardRooms has their order.
	tree bool
	// waits is the one file in which a policy may read the clock and wait.
	waits string
}

// table has a row for each package, by directory, and no row to spare.
var table = map[string]row{
	".":                   {level: words},
	"fault":               {level: words},
	"internal/archtest":   {level: helpers}, // whose tests read internal/snippets
	"internal/charging":   {level: words},
	"internal/calls":      {level: cores},
	"internal/requests":   {level: cores},
	"internal/clock":      {level: policies, waits: "internal/clock/clock.go"}, // for the stacks, which policies cannot import
	"internal/cputime":    {level: words},
	"internal/netconn":    {level: words},
	"internal/elapsed":    {level: words},
	"internal/delay":      {level: words, waits: "internal/delay/delay.go"},
	"internal/ejection":   {level: policies}, // which stands on the words
	"internal/final":      {level: policies}, // likewise
	"internal/hints":      {level: policies}, // likewise
	"internal/frequent":   {level: words},
	"internal/freeport":   {level: edges, kit: true},
	"internal/golden":     {level: edges, kit: true},
	"internal/invalid":    {level: helpers},
	"internal/late":       {level: words},
	"internal/longheads":  {level: helpers},
	"internal/mongowire":  {level: words},
	"internal/outage":     {level: words},
	"internal/pace":       {level: words},
	"internal/place":      {level: policies}, // as final
	"internal/precedence": {level: helpers},
	"internal/race":       {level: words, kit: true},
	"internal/redisreply": {level: helpers},
	"internal/redistest":  {level: edges, kit: true},
	"internal/rejection":  {level: words},
	"internal/snippets":   {level: words},
	"internal/thorough":   {level: words, kit: true},
	"internal/tokens":     {level: words},
	"internal/unsent":     {level: words},

	"attempts":    {level: policies},
	"budget":      {level: policies},
	"concurrency": {level: policies},
	"cost":        {level: policies},
	"inflight":    {level: policies, waits: "inflight/acquire.go"},
	"load":        {level: policies},
	"quota":       {level: policies},
	"ratelimit":   {level: policies, waits: "ratelimit/wait.go"},
	"retry":       {level: policies, waits: "retry/do.go"},
	"degradation": {level: policies},
	"shed":        {level: policies},
	"throttle":    {level: policies},
	"tune":        {level: policies},

	"internal/claims": {level: policies}, // which stands on the words, too

	"internal/idle": {level: stacks}, // what adapters share that report to a stack

	"internal/serving": {level: reports}, // what adapters share that call a stack

	"internal/telemetry": {level: reports},

	"internal/admin": {level: pages, tree: true},

	"connlimit":   {level: stacks}, // which wraps a listener, as a stack wraps a call
	"egress":      {level: stacks},
	"ingress":     {level: stacks},
	"quota/fleet": {level: stacks}, // a rule on top of quota, and the loop that syncs

	"quota/fleet/boardtest": {level: edges, kit: true},

	"spillhttp/internal/early":           {level: stacks}, // as connlimit
	"spillhttp/internal/early/earlytest": {level: edges, kit: true},

	"sim":        {level: edges},
	"spilladmin": {level: edges},
	"spillhttp":  {level: edges},
	"spilltest":  {level: edges, kit: true},
	"spillslog":  {level: edges},
	"spillsql":   {level: edges},

	"spillaws":     {level: edges, hosts: []string{"github.com/aws"}},
	"spillconnect": {level: edges, hosts: []string{"connectrpc.com/connect", "google.golang.org/protobuf", "google.golang.org/genproto"}},
	"spillgrpc":    {level: edges, hosts: []string{"google.golang.org/grpc", "google.golang.org/protobuf", "google.golang.org/genproto"}},
	"spillmongo":   {level: edges, hosts: []string{"go.mongodb.org/mongo-driver/v2"}},
	"spillredis":   {level: edges, hosts: []string{"github.com/redis/go-redis/v9"}},
	"spillrueidis": {level: edges, hosts: []string{"github.com/redis/rueidis"}},
	"spillrlqs":    {level: edges, hosts: []string{"github.com/envoyproxy/go-control-plane", "google.golang.org/grpc", "google.golang.org/protobuf"}},
	"spillotel":    {level: edges, hosts: []string{"go.opentelemetry.io/otel"}},
	"spillprom":    {level: edges, hosts: []string{"github.com/prometheus/client_golang", "github.com/prometheus/client_model"}},
	"spillxds":     {level: edges, hosts: []string{"github.com/envoyproxy/go-control-plane", "github.com/cncf/xds/go", "google.golang.org/grpc", "google.golang.org/protobuf", "google.golang.org/genproto"}},

	"spillmongo/mongotest": {level: edges, hosts: []string{"go.mongodb.org/mongo-driver/v2", "github.com/klauspost/compress", "github.com/xdg-go/scram"}},

	"benchmarks":   {level: programs},
	"cmd/spillway": {level: programs},
	"examples":     {level: programs},
	"tools":        {level: programs}, // what builds and checks a release

	"spillaws/awstest":    {level: programs}, // tests of spillaws with clients of services
	"spillotel/oteltest":  {level: programs}, // tests of spillotel with the SDK
	"spillredis/ratetest": {level: programs}, // spillredis/board beside redis_rate
	"spillsql/sqltest":    {level: programs}, // tests of spillsql with drivers and databases

	"cmd/spillway/drivers":    {level: comparisons, hosts: []string{"go.mongodb.org/mongo-driver"}},
	"cmd/spillway/schematest": {level: comparisons, hosts: []string{"github.com/invopop/jsonschema", "github.com/santhosh-tekuri/jsonschema"}},
}
