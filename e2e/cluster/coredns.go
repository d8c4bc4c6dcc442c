package main

import (
	"flag"
	"fmt"
	"os"

	"github.com/coredns/caddy"
	"github.com/coredns/coredns/core/dnsserver"
	_ "github.com/coredns/coredns/plugin/cache"
	_ "github.com/coredns/coredns/plugin/errors"
	_ "github.com/coredns/coredns/plugin/health"
	_ "github.com/coredns/coredns/plugin/kubernetes"
	_ "github.com/coredns/coredns/plugin/ready"
)

// runCoreDNS serves the cluster's DNS from a Corefile. It does not use CoreDNS's own command line, because that imports every plugin, and only
// the five above are needed.
func runCoreDNS(args []string) int {
	flags := flag.NewFlagSet("coredns", flag.ContinueOnError)
	conf := flags.String("conf", "Corefile", "the Corefile to serve")
	if err := flags.Parse(args); err != nil {
		return 2
	}
	if err := serveDNS(*conf); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func serveDNS(conf string) error {
	if err := dnsserver.Register(); err != nil {
		return fmt.Errorf("registering the DNS server: %w", err)
	}
	corefile, err := os.ReadFile(conf)
	if err != nil {
		return fmt.Errorf("reading the Corefile: %w", err)
	}
	caddy.TrapSignals()
	instance, err := caddy.Start(caddy.CaddyfileInput{Filepath: conf, Contents: corefile, ServerTypeName: "dns"})
	if err != nil {
		return fmt.Errorf("starting CoreDNS: %w", err)
	}
	instance.Wait()
	return nil
}
