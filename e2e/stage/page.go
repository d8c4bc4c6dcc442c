package stage

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Block is a block of commands on a page of docs/, with the heading above it.
type Block struct{ Heading, Text string }

// Commands returns the blocks of a page that begin with "```sh run", in order. Other blocks are examples.
func Commands(page string) ([]Block, error) {
	text, err := os.ReadFile(page)
	if err != nil {
		return nil, fmt.Errorf("reading a page: %w", err)
	}
	var blocks []Block
	heading, in := "", false
	for line := range strings.Lines(string(text)) {
		switch trimmed := strings.TrimRight(line, "\n"); {
		case trimmed == "```sh run":
			blocks, in = append(blocks, Block{Heading: heading}), true
		case strings.HasPrefix(trimmed, "```"):
			in = false
		case in:
			blocks[len(blocks)-1].Text += line
		case strings.HasPrefix(trimmed, "#"):
			heading = strings.TrimLeft(trimmed, "# ")
		}
	}
	if len(blocks) == 0 {
		return nil, fmt.Errorf("page %s has no block of commands", page)
	}
	return blocks, nil
}

// Shell runs commands with bash as a reader of a page does, and ends at the first that fails. kubectl, helm, kubeop and cluster are those of the stage, and
// dir is the working directory. env are more variables, as "name=value".
func (s *Stage) Shell(ctx context.Context, dir, commands string, env ...string) (string, error) {
	tools, err := s.tools()
	if err != nil {
		return "", err
	}
	command := exec.CommandContext(ctx, "bash", "-euo", "pipefail", "-c", commands)
	command.Dir = dir
	command.Env = append(os.Environ(), s.helmHome()...)
	command.Env = append(command.Env, "KUBECONFIG="+s.Cluster.Kubeconfig, "PATH="+tools+":"+os.Getenv("PATH"))
	command.Env = append(command.Env, env...)
	out, err := command.CombinedOutput()
	if err != nil {
		return string(out), fmt.Errorf("running the commands of a page: %w\n%s\n%s", err, commands, out)
	}
	return string(out), nil
}

// tools returns a folder with the programs kubectl, helm, kubeop and cluster.
func (s *Stage) tools() (string, error) {
	dir := s.Path("tools")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("making the folder of the tools: %w", err)
	}
	for name, command := range map[string]string{"kubectl": s.bin.cluster + " kubectl", "helm": s.bin.helm, "kubeop": s.bin.kubeop, "cluster": s.bin.cluster} {
		file := filepath.Join(dir, name)
		if _, err := os.Stat(file); err == nil {
			continue // Others may be running it.
		}
		if err := os.WriteFile(file, []byte("#!/bin/sh\nexec "+command+" \"$@\"\n"), 0o700); err != nil {
			return "", fmt.Errorf("writing the tool %s: %w", name, err)
		}
	}
	return dir, nil
}

// helmHome is where helm keeps its files.
func (s *Stage) helmHome() []string {
	home := s.Path("helm")
	return []string{"HELM_CACHE_HOME=" + home, "HELM_CONFIG_HOME=" + home, "HELM_DATA_HOME=" + home}
}
