package sandbox

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
)

// report is the one line about what protects from what is evaluated, and what then is not protected. It is written again when that
// changes. The pool is locked.
func (p *Pool) report(active []string) {
	confined := strings.Join(append([]string{"rlimits"}, active...), ", ")
	if p.told != nil && *p.told == confined {
		return
	}
	p.told = &confined
	var missing []string
	for _, name := range []string{namespaces, withLock, withFilter} {
		if !slices.Contains(active, name) {
			missing = append(missing, name+" ("+without[name]+")")
		}
	}
	l := p.opts.Limits
	if all, limit := int64(p.opts.Processes)*l.Memory, containerMemory(); limit > 0 && all+ownMemory > limit {
		missing = append(missing, fmt.Sprintf("the container's limit of memory, %s, is less than %d processes of %s and the operator take: "+
			"what is evaluated can end the operator", bytesOf(limit), p.opts.Processes, bytesOf(l.Memory)))
	}
	if p.opts.Processes == 1 {
		missing = append(missing, "there is one process: while it evaluates what takes long, all tenants wait")
	}
	p.opts.Log.Info("Evaluating what tenants wrote in processes of their own", "processes", p.opts.Processes,
		"memory", bytesOf(l.Memory), "cpu", l.CPU.String(), "wall", l.Wall.String(), "output", bytesOf(int64(l.Output)),
		"confinedBy", confined, "notActive", strings.Join(missing, "; "))
}

// Ready is a check of readiness: an error before the first process could be started, and while none can be.
func (p *Pool) Ready(r *http.Request) error {
	p.mu.Lock()
	begun, failed := p.told != nil, p.failed
	p.mu.Unlock()
	switch {
	case failed != nil:
		b, err := p.take(r.Context())
		if err != nil {
			return err
		}
		p.put(b)
		p.mu.Lock()
		p.failed = nil
		p.mu.Unlock()
	case !begun:
		return errors.New("no process that evaluates was started yet")
	}
	return nil
}

// ownMemory is what the operator takes beside the processes.
const ownMemory = 256 << 20

// containerMemory is the limit of memory that the kernel holds this container to, in bytes, and 0 where there is none to be found.
func containerMemory() int64 {
	for _, file := range []string{"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"} {
		text, err := os.ReadFile(file)
		if err != nil {
			continue
		}
		if limit, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64); err == nil && limit < 1<<60 {
			return limit
		}
	}
	return 0 // "max", and the largest number, are none.
}
