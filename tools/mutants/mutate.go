package main

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"path/filepath"
	"slices"
	"strings"
)

type fate int

const (
	fateUnreached fate = iota
	fateLived
	fateKilled
	fateTimedOut
)

// A mutant is one change of one operator.
type mutant struct {
	id     int
	at     string // file:line:column
	line   string // of source
	change string
	fate   fate
}

func (m *mutant) file() string {
	name, _, _ := strings.Cut(m.at, ":")
	return name
}

// An edit of the source. At one offset ends come before starts, and both before operators.
type edit struct {
	offset, drop int
	text         string
	kind         int
	depth        int
}

const (
	end = iota
	start
	operator
)

// A mutator rewrites the files of one package. Each operator becomes a call that does what the
// operator does unless one of its mutants is selected.
type mutator struct {
	fset    *token.FileSet
	info    *types.Info
	pkg     *types.Package
	mutants []*mutant

	source  []byte // of this file
	edits   []edit
	imports map[string]string // path: name in this file
}

// file returns the source of file with calls in place of operators.
func (m *mutator) file(file *ast.File, source []byte) []byte {
	m.source, m.edits, m.imports = source, nil, importsOf(file)
	depth := 0
	ast.Inspect(file, func(n ast.Node) bool {
		if n == nil {
			depth--
			return true
		}
		if !m.node(n, depth) {
			return false
		}
		depth++
		return true
	})
	return apply(source, m.edits)
}

func importsOf(file *ast.File) map[string]string {
	names := map[string]string{}
	for _, spec := range file.Imports {
		path := strings.Trim(spec.Path.Value, `"`)
		names[path] = filepath.Base(path)
		if spec.Name != nil {
			names[path] = spec.Name.Name
		}
	}
	return names
}

// node adds the mutants of one node, and reports whether there may be others in it.
func (m *mutator) node(n ast.Node, depth int) bool {
	switch n := n.(type) {
	case *ast.GenDecl:
		return n.Tok != token.CONST && n.Tok != token.TYPE && n.Tok != token.IMPORT
	case *ast.ArrayType:
		return false
	case *ast.BinaryExpr:
		m.binary(n, depth)
	case *ast.UnaryExpr:
		if n.Op == token.SUB {
			m.sign(n, depth)
		}
	case *ast.IncDecStmt:
		m.step(n)
	}
	return true
}

var arithmetic = map[token.Token]struct {
	call string
	by   token.Token
}{
	token.ADD: {"mutantAdd", token.SUB},
	token.SUB: {"mutantSub", token.ADD},
	token.MUL: {"mutantMul", token.QUO},
	token.QUO: {"mutantQuo", token.MUL},
	token.REM: {"mutantRem", token.MUL},
}

var comparisons = map[token.Token]struct {
	call         string
	negated, off token.Token
}{
	token.LSS: {"mutantLess", token.GEQ, token.LEQ},
	token.LEQ: {"mutantLessEqual", token.GTR, token.LSS},
	token.GTR: {"mutantGreater", token.LEQ, token.GEQ},
	token.GEQ: {"mutantGreaterEqual", token.LSS, token.GTR},
}

func (m *mutator) binary(n *ast.BinaryExpr, depth int) {
	if a, ok := arithmetic[n.Op]; ok {
		instance, ok := m.instance(n)
		if !ok {
			return
		}
		id := m.add(n.OpPos, n.Op, a.by)
		m.call(n, fmt.Sprintf("%s%s(%d, ", a.call, instance, id), depth)
		return
	}
	if m.info.Types[n].Value != nil {
		return
	}
	if c, ok := comparisons[n.Op]; ok {
		negated, off := m.add(n.OpPos, n.Op, c.negated), m.add(n.OpPos, n.Op, c.off)
		m.call(n, fmt.Sprintf("%s(%d, %d, ", c.call, negated, off), depth)
		return
	}
	by := map[token.Token]token.Token{token.EQL: token.NEQ, token.NEQ: token.EQL}
	if to, ok := by[n.Op]; ok {
		id := m.add(n.OpPos, n.Op, to)
		m.insert(n.Pos(), start, "((", depth)
		m.insert(n.End(), end, fmt.Sprintf(") != mutantOn(%d))", id), depth)
	}
}

// call makes a call of the binary operation n.
func (m *mutator) call(n *ast.BinaryExpr, head string, depth int) {
	m.insert(n.Pos(), start, head, depth)
	m.insert(n.End(), end, ")", depth)
	m.edits = append(m.edits, edit{offset: m.offset(n.OpPos), drop: len(n.Op.String()), text: ",", kind: operator})
}

func (m *mutator) sign(n *ast.UnaryExpr, depth int) {
	instance, ok := m.instance(n)
	if !ok {
		return
	}
	id := m.add(n.OpPos, token.SUB, token.ADD)
	m.edits = append(m.edits, edit{offset: m.offset(n.OpPos), drop: 1, text: fmt.Sprintf("mutantNeg%s(%d, ", instance, id), kind: operator})
	m.insert(n.End(), end, ")", depth)
}

func (m *mutator) step(n *ast.IncDecStmt) {
	name, ok := m.name(m.info.TypeOf(n.X))
	if !ok {
		return
	}
	op, by := "+=", token.DEC
	if n.Tok == token.DEC {
		op, by = "-=", token.INC
	}
	id := m.add(n.TokPos, n.Tok, by)
	m.edits = append(m.edits, edit{offset: m.offset(n.TokPos), drop: 2, text: fmt.Sprintf("%s %s(mutantOne(%d))", op, name, id), kind: operator})
}

// instance returns the type argument of the call for an arithmetic expression: one is needed
// where the operands are constants without a type.
func (m *mutator) instance(n ast.Expr) (string, bool) {
	value := m.info.Types[n]
	basic, ok := value.Type.Underlying().(*types.Basic)
	if !ok {
		_, ok := value.Type.(*types.TypeParam)
		return "", ok
	}
	if basic.Info()&types.IsNumeric == 0 || basic.Info()&types.IsUntyped != 0 {
		return "", false
	}
	if value.Value == nil {
		return "", true
	}
	name, ok := m.name(value.Type)
	return "[" + name + "]", ok
}

func (m *mutator) name(t types.Type) (string, bool) {
	known := true
	name := types.TypeString(t, func(p *types.Package) string {
		if p == m.pkg {
			return ""
		}
		as, ok := m.imports[p.Path()]
		known = known && ok
		return as
	})
	return name, known
}

func (m *mutator) add(at token.Pos, from, to token.Token) int {
	p := m.fset.Position(at)
	id := len(m.mutants)
	line, _, _ := strings.Cut(string(m.source[p.Offset-p.Column+1:]), "\n")
	m.mutants = append(m.mutants, &mutant{
		id: id, line: strings.TrimSpace(line), at: fmt.Sprintf("%s:%d:%d", filepath.Base(p.Filename), p.Line, p.Column), change: fmt.Sprintf("%s to %s", from, to),
	})
	return id
}

func (m *mutator) offset(p token.Pos) int { return m.fset.Position(p).Offset }

func (m *mutator) insert(at token.Pos, kind int, text string, depth int) {
	m.edits = append(m.edits, edit{offset: m.offset(at), text: text, kind: kind, depth: depth})
}

func apply(source []byte, edits []edit) []byte {
	slices.SortStableFunc(edits, func(a, b edit) int {
		nested := a.depth - b.depth // what is outside starts first and ends last
		if a.kind == end {
			nested = -nested
		}
		return cmp.Or(a.offset-b.offset, a.kind-b.kind, nested)
	})
	var out []byte
	from := 0
	for _, e := range edits {
		out = append(out, source[from:e.offset]...)
		out = append(out, e.text...)
		from = e.offset + e.drop
	}
	return append(out, source[from:]...)
}
