package spillsql

import "database/sql/driver"

// connFakes returns connections with every subset of the methods that have to do with
// arguments, each with none and with all of the others; and with each of the others alone.
func connFakes(b *fakeConn) []driver.Conn {
	return []driver.Conn{
		b,
		struct {
			*fakeConn
			prepareCtx
			beginCtx
			resetter
			validator
			pinger
		}{b, prepareCtx{b.fake}, beginCtx{b.fake}, resetter{b.fake}, validator{b.fake}, pinger{b.fake}},
		struct {
			*fakeConn
			checker
		}{b, checker{b.fake}},
		struct {
			*fakeConn
			checker
			prepareCtx
			beginCtx
			resetter
			validator
			pinger
		}{b, checker{b.fake}, prepareCtx{b.fake}, beginCtx{b.fake}, resetter{b.fake}, validator{b.fake}, pinger{b.fake}},
		struct {
			*fakeConn
			queryCtx
		}{b, queryCtx{b.fake}},
		struct {
			*fakeConn
			queryCtx
			prepareCtx
			beginCtx
			resetter
			validator
			pinger
		}{b, queryCtx{b.fake}, prepareCtx{b.fake}, beginCtx{b.fake}, resetter{b.fake}, validator{b.fake}, pinger{b.fake}},
		struct {
			*fakeConn
			queryCtx
			checker
		}{b, queryCtx{b.fake}, checker{b.fake}},
		struct {
			*fakeConn
			queryCtx
			checker
			prepareCtx
			beginCtx
			resetter
			validator
			pinger
		}{b, queryCtx{b.fake}, checker{b.fake}, prepareCtx{b.fake}, beginCtx{b.fake}, resetter{b.fake}, validator{b.fake}, pinger{b.fake}},
		struct {
			*fakeConn
			queryOld
		}{b, queryOld{b.fake}},
		struct {
			*fakeConn
			queryOld
			prepareCtx
			beginCtx
			resetter
			validator
			pinger
		}{b, queryOld{b.fake}, prepareCtx{b.fake}, beginCtx{b.fake}, resetter{b.fake}, validator{b.fake}, pinger{b.fake}},
		struct {
			*fakeConn
			queryOld
			checker
		}{b, queryOld{b.fake}, checker{b.fake}},
		struct {
			*fakeConn
			queryOld
			checker
			prepareCtx
			beginCtx
			resetter
			validator
			pinger
		}{b, queryOld{b.fake}, checker{b.fake}, prepareCtx{b.fake}, beginCtx{b.fake}, resetter{b.fake}, validator{b.fake}, pinger{b.fake}},
		struct {
			*fakeConn
			execCtx
		}{b, execCtx{b.fake}},
		struct {
			*fakeConn
			execCtx
			prepareCtx
			beginCtx
			resetter
			validator
			pinger
		}{b, execCtx{b.fake}, prepareCtx{b.fake}, beginCtx{b.fake}, resetter{b.fake}, validator{b.fake}, pinger{b.fake}},
		struct {
			*fakeConn
			execCtx
			checker
		}{b, execCtx{b.fake}, checker{b.fake}},
		struct {
			*fakeConn
			execCtx
			checker
			prepareCtx
			beginCtx
			resetter
			validator
			pinger
		}{b, execCtx{b.fake}, checker{b.fake}, prepareCtx{b.fake}, beginCtx{b.fake}, resetter{b.fake}, validator{b.fake}, pinger{b.fake}},
		struct {
			*fakeConn
			execCtx
			queryCtx
		}{b, execCtx{b.fake}, queryCtx{b.fake}},
		struct {
			*fakeConn
			execCtx
			queryCtx
			prepareCtx
			beginCtx
			resetter
			validator
			pinger
		}{b, execCtx{b.fake}, queryCtx{b.fake}, prepareCtx{b.fake}, beginCtx{b.fake}, resetter{b.fake}, validator{b.fake}, pinger{b.fake}},
		struct {
			*fakeConn
			execCtx
			queryCtx
			checker
		}{b, execCtx{b.fake}, queryCtx{b.fake}, checker{b.fake}},
		struct {
			*fakeConn
			execCtx
			queryCtx
			checker
			prepareCtx
			beginCtx
			resetter
			validator
			pinger
		}{b, execCtx{b.fake}, queryCtx{b.fake}, checker{b.fake}, prepareCtx{b.fake}, beginCtx{b.fake}, resetter{b.fake}, validator{b.fake}, pinger{b.fake}},
		struct {
			*fakeConn
			execCtx
			queryOld
		}{b, execCtx{b.fake}, queryOld{b.fake}},
		struct {
			*fakeConn
			execCtx
			queryOld
			prepareCtx
			beginCtx
			resetter
			validator
			pinger
		}{b, execCtx{b.fake}, queryOld{b.fake}, prepareCtx{b.fake}, beginCtx{b.fake}, resetter{b.fake}, validator{b.fake}, pinger{b.fake}},
		struct {
			*fakeConn
			execCtx
			queryOld
			checker
		}{b, execCtx{b.fake}, queryOld{b.fake}, checker{b.fake}},
		struct {
			*fakeConn
			execCtx
			queryOld
			checker
			prepareCtx
			beginCtx
			resetter
			validator
			pinger
		}{b, execCtx{b.fake}, queryOld{b.fake}, checker{b.fake}, prepareCtx{b.fake}, beginCtx{b.fake}, resetter{b.fake}, validator{b.fake}, pinger{b.fake}},
		struct {
			*fakeConn
			execOld
		}{b, execOld{b.fake}},
		struct {
			*fakeConn
			execOld
			prepareCtx
			beginCtx
			resetter
			validator
			pinger
		}{b, execOld{b.fake}, prepareCtx{b.fake}, beginCtx{b.fake}, resetter{b.fake}, validator{b.fake}, pinger{b.fake}},
		struct {
			*fakeConn
			execOld
			checker
		}{b, execOld{b.fake}, checker{b.fake}},
		struct {
			*fakeConn
			execOld
			checker
			prepareCtx
			beginCtx
			resetter
			validator
			pinger
		}{b, execOld{b.fake}, checker{b.fake}, prepareCtx{b.fake}, beginCtx{b.fake}, resetter{b.fake}, validator{b.fake}, pinger{b.fake}},
		struct {
			*fakeConn
			execOld
			queryCtx
		}{b, execOld{b.fake}, queryCtx{b.fake}},
		struct {
			*fakeConn
			execOld
			queryCtx
			prepareCtx
			beginCtx
			resetter
			validator
			pinger
		}{b, execOld{b.fake}, queryCtx{b.fake}, prepareCtx{b.fake}, beginCtx{b.fake}, resetter{b.fake}, validator{b.fake}, pinger{b.fake}},
		struct {
			*fakeConn
			execOld
			queryCtx
			checker
		}{b, execOld{b.fake}, queryCtx{b.fake}, checker{b.fake}},
		struct {
			*fakeConn
			execOld
			queryCtx
			checker
			prepareCtx
			beginCtx
			resetter
			validator
			pinger
		}{b, execOld{b.fake}, queryCtx{b.fake}, checker{b.fake}, prepareCtx{b.fake}, beginCtx{b.fake}, resetter{b.fake}, validator{b.fake}, pinger{b.fake}},
		struct {
			*fakeConn
			execOld
			queryOld
		}{b, execOld{b.fake}, queryOld{b.fake}},
		struct {
			*fakeConn
			execOld
			queryOld
			prepareCtx
			beginCtx
			resetter
			validator
			pinger
		}{b, execOld{b.fake}, queryOld{b.fake}, prepareCtx{b.fake}, beginCtx{b.fake}, resetter{b.fake}, validator{b.fake}, pinger{b.fake}},
		struct {
			*fakeConn
			execOld
			queryOld
			checker
		}{b, execOld{b.fake}, queryOld{b.fake}, checker{b.fake}},
		struct {
			*fakeConn
			execOld
			queryOld
			checker
			prepareCtx
			beginCtx
			resetter
			validator
			pinger
		}{b, execOld{b.fake}, queryOld{b.fake}, checker{b.fake}, prepareCtx{b.fake}, beginCtx{b.fake}, resetter{b.fake}, validator{b.fake}, pinger{b.fake}},
		struct {
			*fakeConn
			prepareCtx
		}{b, prepareCtx{b.fake}},
		struct {
			*fakeConn
			prepareCtx
			execCtx
			queryCtx
			checker
		}{b, prepareCtx{b.fake}, execCtx{b.fake}, queryCtx{b.fake}, checker{b.fake}},
		struct {
			*fakeConn
			beginCtx
		}{b, beginCtx{b.fake}},
		struct {
			*fakeConn
			beginCtx
			execCtx
			queryCtx
			checker
		}{b, beginCtx{b.fake}, execCtx{b.fake}, queryCtx{b.fake}, checker{b.fake}},
		struct {
			*fakeConn
			resetter
		}{b, resetter{b.fake}},
		struct {
			*fakeConn
			resetter
			execCtx
			queryCtx
			checker
		}{b, resetter{b.fake}, execCtx{b.fake}, queryCtx{b.fake}, checker{b.fake}},
		struct {
			*fakeConn
			validator
		}{b, validator{b.fake}},
		struct {
			*fakeConn
			validator
			execCtx
			queryCtx
			checker
		}{b, validator{b.fake}, execCtx{b.fake}, queryCtx{b.fake}, checker{b.fake}},
		struct {
			*fakeConn
			pinger
		}{b, pinger{b.fake}},
		struct {
			*fakeConn
			pinger
			execCtx
			queryCtx
			checker
		}{b, pinger{b.fake}, execCtx{b.fake}, queryCtx{b.fake}, checker{b.fake}},
	}
}
