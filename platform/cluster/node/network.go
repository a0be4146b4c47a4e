// The pod network of a node: an address range for its own pods, a route to every other node's, and nothing in between.
//
// It follows the Node objects, because they carry all that is needed (pod range and address), and puts the node's CNI
// file, routes and masquerading into line with them. It enforces no NetworkPolicy.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"sort"
	"strings"
	"time"

	"github.com/vishvananda/netlink"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
)

const (
	kubeletConfig = "/etc/kubernetes/kubelet.conf"
	cniFile       = "/etc/cni/net.d/10-millrace.conflist"
	masqueChain   = "MILLRACE-PODS"
	recheck       = 10 * time.Second // puts back what someone else removed, such as a flushed firewall table
)

func podNetwork() error {
	host, err := os.Hostname()
	if err != nil {
		return err
	}
	client := connect()
	nodes := informers.NewSharedInformerFactory(client, 0).Core().V1().Nodes()
	changed := make(chan struct{}, 1)
	wake := func() {
		select {
		case changed <- struct{}{}:
		default:
		}
	}
	nodes.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(any) { wake() },
		UpdateFunc: func(any, any) { wake() },
		DeleteFunc: func(any) { wake() },
	})
	go nodes.Informer().Run(context.Background().Done())
	for {
		select {
		case <-changed:
		case <-time.After(recheck):
		}
		all, err := nodes.Lister().List(labels.Everything())
		if err == nil {
			err = reconcile(host, all)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, "pod network:", err)
		}
	}
}

// connect waits for the kubelet's credentials: kubeadm writes them when the node joins.
func connect() kubernetes.Interface {
	for {
		if config, err := clientcmd.BuildConfigFromFlags("", kubeletConfig); err == nil {
			if client, err := kubernetes.NewForConfig(config); err == nil {
				return client
			}
		}
		time.Sleep(100 * time.Millisecond)
	}
}

func reconcile(host string, nodes []*corev1.Node) error {
	var ranges []string
	var own string
	for _, node := range nodes {
		if node.Spec.PodCIDR == "" {
			continue
		}
		ranges = append(ranges, node.Spec.PodCIDR)
		if node.Name == host {
			own = node.Spec.PodCIDR
		} else if err := routeTo(node); err != nil {
			return err
		}
	}
	if own == "" {
		return nil // the controller manager has not given us a range yet
	}
	sort.Strings(ranges)
	if err := masquerade(own, ranges); err != nil {
		return err
	}
	return writeCNI(own)
}

func routeTo(node *corev1.Node) error {
	_, pods, err := net.ParseCIDR(node.Spec.PodCIDR)
	if err != nil {
		return err
	}
	for _, address := range node.Status.Addresses {
		if gateway := net.ParseIP(address.Address); address.Type == corev1.NodeInternalIP && gateway.To4() != nil {
			return netlink.RouteReplace(&netlink.Route{Dst: pods, Gw: gateway})
		}
	}
	return nil
}

// masquerade hides pods only from the world outside: between pods the sender's address stays what it is.
func masquerade(own string, ranges []string) error {
	var rules strings.Builder
	fmt.Fprintf(&rules, "*nat\n:%s - [0:0]\n", masqueChain)
	for _, podRange := range ranges {
		fmt.Fprintf(&rules, "-A %s -d %s -j RETURN\n", masqueChain, podRange)
	}
	fmt.Fprintf(&rules, "-A %s -j MASQUERADE\nCOMMIT\n", masqueChain)
	restore := exec.Command("iptables-restore", "--wait", "--noflush")
	restore.Stdin = strings.NewReader(rules.String())
	if out, err := restore.CombinedOutput(); err != nil {
		return fmt.Errorf("iptables-restore: %w: %s", err, out)
	}
	jump := []string{"POSTROUTING", "-s", own, "-o", "eth0", "-j", masqueChain}
	if exec.Command("iptables", append([]string{"--wait", "-t", "nat", "-C"}, jump...)...).Run() == nil {
		return nil
	}
	return exec.Command("iptables", append([]string{"--wait", "-t", "nat", "-A"}, jump...)...).Run()
}

type object = map[string]any

// writeCNI comes last: the kubelet calls the node ready as soon as the file is there.
func writeCNI(own string) error {
	content, err := json.Marshal(object{
		"cniVersion": "0.3.1",
		"name":       "millrace",
		"plugins": []object{
			{"type": "ptp", "mtu": 1500, "ipMasq": false, "ipam": object{
				"type":    "host-local",
				"dataDir": "/run/cni-ipam-state",
				"ranges":  [][]object{{{"subnet": own}}},
				"routes":  []object{{"dst": "0.0.0.0/0"}},
			}},
			{"type": "portmap", "capabilities": object{"portMappings": true}},
		},
	})
	if err != nil {
		return err
	}
	if present, err := os.ReadFile(cniFile); err == nil && bytes.Equal(present, content) {
		return nil
	}
	fresh := cniFile + ".fresh" // the kubelet reads only *.conf, *.conflist and *.json
	if err := os.WriteFile(fresh, content, 0o644); err != nil {
		return err
	}
	return os.Rename(fresh, cniFile)
}
