package spillsql

import "database/sql/driver"

// stmtFakes returns statements with every subset of the optional methods.
func stmtFakes(b *fakeStmt) []driver.Stmt {
	return []driver.Stmt{
		b,
		struct {
			*fakeStmt
			stmtExec
		}{b, stmtExec{b.fake}},
		struct {
			*fakeStmt
			stmtQuery
		}{b, stmtQuery{b.fake}},
		struct {
			*fakeStmt
			checker
		}{b, checker{b.fake}},
		struct {
			*fakeStmt
			converter
		}{b, converter{b.fake}},
		struct {
			*fakeStmt
			stmtExec
			stmtQuery
		}{b, stmtExec{b.fake}, stmtQuery{b.fake}},
		struct {
			*fakeStmt
			stmtExec
			checker
		}{b, stmtExec{b.fake}, checker{b.fake}},
		struct {
			*fakeStmt
			stmtExec
			converter
		}{b, stmtExec{b.fake}, converter{b.fake}},
		struct {
			*fakeStmt
			stmtQuery
			checker
		}{b, stmtQuery{b.fake}, checker{b.fake}},
		struct {
			*fakeStmt
			stmtQuery
			converter
		}{b, stmtQuery{b.fake}, converter{b.fake}},
		struct {
			*fakeStmt
			checker
			converter
		}{b, checker{b.fake}, converter{b.fake}},
		struct {
			*fakeStmt
			stmtExec
			stmtQuery
			checker
		}{b, stmtExec{b.fake}, stmtQuery{b.fake}, checker{b.fake}},
		struct {
			*fakeStmt
			stmtExec
			stmtQuery
			converter
		}{b, stmtExec{b.fake}, stmtQuery{b.fake}, converter{b.fake}},
		struct {
			*fakeStmt
			stmtExec
			checker
			converter
		}{b, stmtExec{b.fake}, checker{b.fake}, converter{b.fake}},
		struct {
			*fakeStmt
			stmtQuery
			checker
			converter
		}{b, stmtQuery{b.fake}, checker{b.fake}, converter{b.fake}},
		struct {
			*fakeStmt
			stmtExec
			stmtQuery
			checker
			converter
		}{b, stmtExec{b.fake}, stmtQuery{b.fake}, checker{b.fake}, converter{b.fake}},
	}
}

// rowsFakes returns rows with none, with each, and with all of the optional methods.
func rowsFakes(b *fakeRows) []driver.Rows {
	return []driver.Rows{
		b,
		struct {
			*fakeRows
			moreSets
		}{b, moreSets{b.fake}},
		struct {
			*fakeRows
			scanType
		}{b, scanType{b.fake}},
		struct {
			*fakeRows
			typeName
		}{b, typeName{b.fake}},
		struct {
			*fakeRows
			typeLength
		}{b, typeLength{b.fake}},
		struct {
			*fakeRows
			nullable
		}{b, nullable{b.fake}},
		struct {
			*fakeRows
			precision
		}{b, precision{b.fake}},
		struct {
			*fakeRows
			moreSets
			scanType
			typeName
			typeLength
			nullable
			precision
		}{b, moreSets{b.fake}, scanType{b.fake}, typeName{b.fake}, typeLength{b.fake}, nullable{b.fake}, precision{b.fake}},
	}
}
