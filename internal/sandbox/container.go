package sandbox

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// cgroups is the folder in which a container sees its own cgroup.
const cgroups = "/sys/fs/cgroup"

// container has the memory limits of this container.
type container struct {
	// version of the cgroups, or 0 if there are none.
	version int
	// memory is the limit in bytes, or 0 if none was found.
	memory int64
	// together means that the kernel kills all processes of the container when its memory is used up, not only one. The kubelet sets this
	// with cgroup v2 unless it has singleProcessOOMKill.
	together bool
}

// containerAt reads the cgroup that is mounted at a folder.
func containerAt(folder string) container {
	read := func(name string) string {
		text, _ := os.ReadFile(filepath.Join(folder, name)) // What cannot be read is unknown, as an empty file is.
		return strings.TrimSpace(string(text))
	}
	c := container{}
	limit := read("memory.max")
	switch {
	case limit != "" || read("cgroup.controllers") != "":
		c.version, c.together = 2, read("memory.oom.group") == "1"
	default:
		if limit = read("memory/memory.limit_in_bytes"); limit != "" {
			c.version = 1
		}
	}
	// "max" and huge numbers mean that there is no limit.
	if bytes, err := strconv.ParseInt(limit, 10, 64); err == nil && bytes < 1<<60 {
		c.memory = bytes
	}
	return c
}

// missing lists the properties of the container by which an evaluation could end the operator.
func (c container) missing() (missing []string) {
	switch c.version {
	case 0:
		missing = append(missing, "cgroup v2 (what limits this container's memory is not known, and is not compared with what the processes take)")
	case 1:
		missing = append(missing, "cgroup v2 (version 1 is there: the kernel's own memory for the processes may not count to the container's limit)")
	}
	if c.version > 0 && c.memory == 0 {
		missing = append(missing, "a limit of the container's memory (the processes and the operator may take the node's)")
	}
	if c.together {
		missing = append(missing, "an end of single processes when memory is short (the container has memory.oom.group: "+
			"the kernel ends the operator with them; the kubelet's singleProcessOOMKill changes that)")
	}
	return missing
}
