// Package top shows many processes of Spillway on one page: proxies, services of quotas, and programs that use the
// library.
//
//	addresses, DNS ─► Fleet ─► Process (history) ─► Page ─► text or JSON
//
// A [Command] has the flags. It asks again and again, and shows the pages in place on a terminal, or one after another.
//
// # One window
//
// A process counts requests since its start. The package reads the counts again and again, and makes rates of two
// samples: the latest, and the one that is about a window older, or the first one. So all rates of a page are
// over the same window, whatever the processes themselves show. The time between two samples is that of the process,
// unless its clock was set in between.
//
// If counts fall, or the time of the start changes, another process has this address: the history begins again. A
// process with one sample has no rates yet, and is not in the sums.
//
// # Names
//
// A process lists the names with most rejections of 5 to 10 minutes, and forgets all others. The growth of a row
// between two answers is rejections in that time. If the row falls, the process has begun a new list, and the growth
// is taken as zero. If the row is new in a list that was full, it counts what it has more than the last row had. So a
// rate of a name is never too high: the page says "at least". Rejections that belong to no name are the others.
//
// # Every process has a line
//
// A process that does not answer, rejects the token or answers with something else has a line with what to do. It is
// asked again each time; meanwhile the page shows all others. What it showed before counts for [Patience].
package top
