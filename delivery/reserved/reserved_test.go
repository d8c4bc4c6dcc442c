package reserved

import (
	"net/netip"
	"slices"
	"strings"
	"testing"
)

func TestReservedAddressesSayWhatTheyAre(t *testing.T) {
	for address, want := range map[string]string{
		"127.0.0.1": "loopback", "::1": "loopback", "::ffff:127.0.0.1": "loopback", "169.254.169.254": "link-local", "fe80::1%eth0": "link-local",
		"64:ff9b::a9fe:a9fe": "link-local", "0.0.0.0": "no host", "::": "no host", "224.0.0.1": "multicast", "ff02::1": "multicast",
		"255.255.255.255": "broadcast", "fd00:ec2::254": "metadata", "168.63.129.16": "metadata", "100.100.100.200": "metadata",
		"0.255.255.255": "no host", "1.0.0.0": "", "126.255.255.255": "", "127.255.255.255": "loopback", "128.0.0.0": "", "::2": "",
		"169.253.255.255": "", "169.254.0.0": "link-local", "169.254.255.255": "link-local", "169.255.0.0": "", "fe7f::1": "", "febf::1": "link-local", "fec0::1": "",
		"223.255.255.255": "", "239.255.255.255": "multicast", "240.0.0.0": "", "ff00::": "multicast", "feff::1": "", "255.255.255.254": "",
		"fd20:ce::254": "metadata", "192.0.0.192": "metadata", "fd00:ec2::253": "", "fd20:ce::255": "", "168.63.129.17": "", "100.100.100.201": "", "192.0.0.191": "",
		"64:ff9b::7f00:1": "loopback", "64:ff9b:1::7f00:1": "", "::ffff:169.254.169.254": "link-local",
		"10.0.0.1": "", "fd00::1": "", "1.1.1.1": "", "2606:4700::1111": "",
	} {
		got := As(Embedded(netip.MustParseAddr(address)))
		if (want == "") != (got == "") || !strings.Contains(got, want) {
			t.Errorf("%s is %q, want %q", address, got, want)
		}
	}
}

// TestAnAddressOfTheSitesGatewayStandsForEachAddressThatItMayTranslateTo, whatever the length of the site's prefix is.
func TestAnAddressOfTheSitesGatewayStandsForEachAddressThatItMayTranslateTo(t *testing.T) {
	for address, want := range map[string]string{
		"64:ff9b:1:a9fe:a9:fe00::":   "169.254.169.254 254.169.254.0 169.254.0.0", // A prefix of 48 bits.
		"64:ff9b:1:a9:fe:a9fe::":     "169.254.169.254 254.169.254.0",             // 56 bits.
		"64:ff9b:1:0:a9:fea9:fe00::": "169.254.169.254 254.0.0.0",                 // 64 bits.
		"64:ff9b:1::a9fe:a9fe":       "169.254.169.254",                           // 96 bits.
		"64:ff9b:1:fffe::808:808":    "255.254.0.0 254.0.0.0 8.8.8.8",
		"64:ff9b:1::":                "", "64:ff9b::a9fe:a9fe": "", "64:ff9b:2::a9fe:a9fe": "", "169.254.169.254": "",
	} {
		var got []string
		for _, ip := range Translations(netip.MustParseAddr(address)) {
			got = append(got, ip.String())
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s may be translated to %v, want %s", address, got, want)
		}
	}
}

// TestMetadataAndPrivateCoverWholeNetworks: what pods are kept from is where clouds have their metadata, and not, say, loopback, which is their own.
func TestMetadataAndPrivateCoverWholeNetworks(t *testing.T) {
	within := func(networks []netip.Prefix, address string) bool {
		return slices.ContainsFunc(networks, func(p netip.Prefix) bool { return p.Contains(netip.MustParseAddr(address)) })
	}
	for address, want := range map[string]bool{
		"169.254.169.254": true, "fd00:ec2::254": true, "fe80::a9fe:a9fe": true, "168.63.129.16": true, "fd20:ce::254": true, "100.100.100.200": true, "192.0.0.192": true, "127.0.0.1": false, "::1": false, "255.255.255.255": false, "224.0.0.1": false, "10.0.0.1": false,
	} {
		if got := within(Metadata(), address); got != want {
			t.Errorf("%s is metadata: %t, want %t", address, got, want)
		}
	}
	for address, want := range map[string]bool{"10.1.2.3": true, "100.64.0.1": true, "fd12::1": true, "10.0.0.0": true, "10.255.255.255": true, "9.255.255.255": false, "11.0.0.0": false,
		"172.15.255.255": false, "172.16.0.0": true, "172.31.255.255": true, "192.168.0.0": true, "192.168.255.255": true, "192.169.0.0": false,
		"100.63.255.255": false, "100.127.255.255": true, "100.128.0.0": false, "fbff::1": false, "fc00::1": true, "fdff::1": true, "fe00::1": false,
		"172.32.0.1": false, "8.8.8.8": false, "2001:db8::1": false} {
		if got := within(Private(), address); got != want {
			t.Errorf("%s is private: %t, want %t", address, got, want)
		}
	}
}
