package archtest

// A level is a layer of the architecture; a package may import lower ones only.
type level int

const (
	words    level = iota // what all share
	policies              // one decision each
	stacks                // policies in their order
	edges                 // adapters, the simulator, the test kits
	programs              // everything with a main package
)

var levelNames = [...]string{"L0 words", "L1 policies", "L2 stacks", "L3 edges", "L4 programs"}

func (l level) String() string { return levelNames[l] }

// A row says what one package of the root module, or another module as a
// whole, may do.
type row struct {
	level level
	// kit says that tests of every level may import it.
	kit bool
	// hosts are the path prefixes of the one library that an adapter is for.
	hosts []string
	// waits is the one file in which a policy may read the clock and wait.
	waits string
}

// table has a row for each package, by directory, and no row to spare.
var table = map[string]row{
	".":                 {level: words},
	"fault":             {level: words},
	"internal/archtest": {level: words},
	"internal/tokens":   {level: words},

	"attempts":  {level: policies},
	"budget":    {level: policies},
	"inflight":  {level: policies},
	"load":      {level: policies},
	"quota":     {level: policies},
	"ratelimit": {level: policies},
	"retry":     {level: policies, waits: "retry/do.go"},
	"shed":      {level: policies},
	"throttle":  {level: policies},

	"egress":  {level: stacks},
	"ingress": {level: stacks},

	"spillhttp": {level: edges},

	"benchmarks":   {level: programs},
	"cmd/spillway": {level: programs},
	"examples":     {level: programs},
}
