# `make` is the fast loop; `make help` lists the rest.

MAKEFLAGS += --no-print-directory

BENCHTIME ?= 0.2s
COUNT     ?= 6
# In inputs, not in seconds: go test may take the end of a time for a failure (go.dev/issue/75804).
FUZZTIME  ?= 50000x
# For make hostile: how long each row is measured, how long all attacks last at once, and
# which rows (a pattern). With these a row takes half a minute, and a minute if it needs a second try.
HOSTILE   ?= 10s
MIX       ?= 10m
ROWS      ?= .
NAME      ?= new
RECORD    ?= $(shell date -u +%Y-%m-%d)
RECORDED  ?= ./benchmarks ./throttle ./inflight ./retry ./ratelimit ./budget ./shed ./concurrency ./connlimit ./ingress ./egress ./spillhttp ./spillgrpc ./spillprom ./spillotel/oteltest
OLD       ?= old
NEW       ?= new
PKG       ?= work
GOTEST    ?= go test

# For make release and make try.
VERSION   ?= v0.1.0

LINT_VERSION := v2.15.0
LINT         := dist/bin/golangci-lint-$(LINT_VERSION)

VULN_VERSION := v1.9.0
VULN         := dist/bin/govulncheck-$(VULN_VERSION)

# For make mutants: each package by its own tests, which -short makes quick.
MUTATED         ?= fault internal/tokens throttle inflight retry budget ratelimit concurrency load shed quota cost attempts tune egress ingress connlimit spillhttp

# For make short32.
SHORT32         ?= . attempts budget concurrency connlimit cost egress fault inflight ingress load quota ratelimit retry shed throttle tune spillhttp

# each runs a command in every module, without the workspace.
each = bad=; for dir in $$(go list -m -f '{{.Dir}}'); do (cd "$$dir" && $(CURDIR)/tools/alone sh -c '$(1)') || bad=1; done; [ -z "$$bad" ]

.PHONY: all
all: build vet test ## Build, vet, test: the fast loop

.PHONY: help
help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "%-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: ci
ci: ## Run all that CI runs
	@.ci/run

.PHONY: build
build: ## Compile all modules
	@go build -o /dev/null work

.PHONY: vet
vet: ## go vet on all modules
	@go vet work

.PHONY: test
test: ## Test all modules
	@go test work

.PHONY: test-thorough
test-thorough: ## Test all modules with all random seeds and rows, as CI does; some minutes longer
	@go test -tags thorough -timeout 20m work

.PHONY: race
race: ## Test with the race detector; without what only measures, what others wrote, and what runs on one goroutine
	@$(GOTEST) -race -short $$(go list work | grep -vE '/(benchmarks|drivers|examples|tools|archtest|awstest|sqltest|policyconf|prediction|schematest|simreport)(/|$$)')

.PHONY: short32
short32: ## Test what counts bytes and has 64-bit atomics where an int has 32 bits; says SKIPPED where 386 programs cannot run
	@tools/short32 $(SHORT32)

.PHONY: standalone
standalone: ## Build, vet and test (-short) each module as its users see it, without the workspace
	@bad=; for dir in $$(go list -m -f '{{.Dir}}'); do (cd "$$dir" && $(CURDIR)/tools/standalone) || bad=1; done; [ -z "$$bad" ]

.PHONY: lint
lint: $(LINT) ## golangci-lint on all modules, with vet and staticcheck in it
	@$(LINT) run $$(go list -m -f '{{.Dir}}/...')

$(LINT):
	@GOBIN="$(CURDIR)/dist/bin" go install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(LINT_VERSION)
	@mv dist/bin/golangci-lint $@

.PHONY: vulncheck
vulncheck: $(VULN) ## Look for known vulnerabilities; says SKIPPED where their database cannot be reached
	@tools/vulncheck $(CURDIR)/$(VULN)

$(VULN):
	@GOBIN="$(CURDIR)/dist/bin" go install golang.org/x/vuln/cmd/govulncheck@$(VULN_VERSION)
	@mv dist/bin/govulncheck $@

.PHONY: mutants
mutants: ## Test the tests of MUTATED packages: changes of one operator that no test notices (some minutes for all)
	@nice go run ./tools/mutants $(MUTATED)

.PHONY: tools
tools: $(LINT) $(VULN) ## Build the linters ahead of time

.PHONY: promtool
promtool: ## Check the alert rules, their tests and the metrics with promtool
	@command -v promtool >/dev/null || { echo "promtool is not installed: Debian has it in the package prometheus"; exit 1; }
	@go test -tags thorough -count 1 ./tools/deploy
	@go test -count 1 -run TestPromtool ./spillprom

.PHONY: site
site: ## Build the documentation site in dist/site and check its links; needs mkdocs-material, from Debian or PyPI
	@command -v mkdocs >/dev/null || { echo "mkdocs is not installed: Debian has it in the package mkdocs-material"; exit 1; }
	@mkdocs build --quiet --strict --config-file tools/site/mkdocs.yml
	@go run ./tools/site dist/site

.PHONY: fmt
fmt: ## Format all Go files
	@gofmt -w .

.PHONY: fmt-check
fmt-check: ## Fail if a Go file is not formatted
	@files=$$(gofmt -l .) && [ -z "$$files" ] || { echo "not formatted, run make fmt:"; echo "$$files"; exit 1; }

.PHONY: tidy
tidy: ## Tidy the go.mod of all modules
	@$(call each,go mod tidy)

.PHONY: versions
versions: ## Raise the requirements of all modules to the versions of the workspace; standalone is quick where they agree
	@for dir in $$(go list -m -f '{{.Dir}}'); do (cd "$$dir" && $(CURDIR)/tools/versions) || exit 1; done

.PHONY: tidy-check
tidy-check: ## Fail if a go.mod is not tidy
	@$(call each,go mod tidy -diff)

.PHONY: api
api: ## Record in api.txt what all modules export
	@go run ./tools/api >api.new && mv api.new api.txt

.PHONY: api-check
api-check: ## Fail if the exported names are not those of api.txt, or a new one is not in the CHANGELOG
	@go run ./tools/api -check api.txt

.PHONY: fuzz
fuzz: ## Fuzz every target of PKG with FUZZTIME inputs each
	@tools/fuzz $(FUZZTIME) $(PKG)

.PHONY: bench
bench: ## Run the benchmarks of PKG COUNT times, into dist/bench/NAME.txt
	@mkdir -p dist/bench
	@go test -run '^$$' -bench . -benchmem -count $(COUNT) $(PKG) >dist/bench/$(NAME).txt || { cat dist/bench/$(NAME).txt; exit 1; }
	@go tool benchstat dist/bench/$(NAME).txt

.PHONY: bench-peers
bench-peers: ## Compare with other libraries, COUNT times for BENCHTIME each; the first column is ours
	@mkdir -p dist/bench
	@# One after the other, so that a busy minute of the machine is in the figures of all.
	@for run in $$(seq $(COUNT)); do go test -run '^$$' -bench . -count 1 -benchtime $(BENCHTIME) ./benchmarks || exit 1; done \
		>dist/bench/peers.txt || { cat dist/bench/peers.txt; exit 1; }
	@go tool benchstat -table .name -row .name -col /impl -filter '.unit:(sec/op OR allocs/op)' dist/bench/peers.txt

.PHONY: bench-record
bench-record: ## Run the benchmarks of RECORDED and keep them as benchmarks/records/RECORD.json; write the pages that show them
	@go run ./benchmarks/record run --name $(RECORD) --count $(COUNT) --benchtime $(BENCHTIME) --skip '^Benchmark(Rejection|Loopback|FanOut|Unary|Call|Figures)$$' $(RECORDED)

.PHONY: bench-overload
bench-overload: ## Overload a server behind ours, other libraries and nothing, and print the tables; ARGS are its flags
	@mkdir -p dist/bin dist/bench
	@go build -o dist/bin/overload ./benchmarks/overload
	@dist/bin/overload --json dist/bench/overload.json $(ARGS)

.PHONY: bench-proxy
bench-proxy: ## Put the proxy beside no proxy, haproxy and caddy, which must be installed; ARGS are its flags
	@mkdir -p dist/bin dist/bench
	@go build -o dist/bin/spillway ./cmd/spillway
	@go build -o dist/bin/proxybench ./benchmarks/proxybench
	@dist/bin/proxybench --spillway dist/bin/spillway --json dist/bench/proxy.json $(ARGS)

.PHONY: hostile
hostile: ## Attack the proxy: the table of ROWS, each for HOSTILE, then all for MIX; HOSTILE=0 or MIX=0 leaves one out
	@mkdir -p dist
	@go test -count 1 -timeout 2h -v -run 'TestTable/($(ROWS))|TestMix' ./cmd/spillway/internal/gateway/hostile -hostile.full -hostile.for $(HOSTILE) -hostile.mix $(MIX) >dist/hostile.txt; status=$$?; \
	grep -v "^=== " dist/hostile.txt; exit $$status

.PHONY: release
release: ## Make the modules and the program of VERSION ready to publish, in dist/release; VERIFY=1 builds each program twice, PLATFORMS=linux/amd64 only that one
	@go run ./tools/release --version $(VERSION) --out dist/release/$(VERSION) $(if $(VERIFY),--verify) $(if $(PLATFORMS),--platforms $(PLATFORMS))

.PHONY: release-check
release-check: ## Test what a release publishes: pack all modules, install them from a file proxy, follow the README and docs/start.md
	@go test -count 1 -timeout 20m ./tools/release -release

.PHONY: try
try: ## Make a module proxy of this checkout in dist/try, and print the line with which go get and go install use it
	@go run ./tools/release --version $(VERSION) --try dist/try

.PHONY: benchcmp
benchcmp: ## Compare dist/bench/OLD.txt with dist/bench/NEW.txt
	@go tool benchstat dist/bench/$(OLD).txt dist/bench/$(NEW).txt

.PHONY: cover
cover: ## Show what the tests of all modules cover
	@mkdir -p dist
	@go test -coverprofile dist/cover.out work
	@go tool cover -func dist/cover.out | tail -n 1

.PHONY: clean
clean: ## Remove all that make made
	@rm -rf dist
