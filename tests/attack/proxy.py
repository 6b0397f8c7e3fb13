# SPDX-License-Identifier: Apache-2.0
"""A program between the ranks of a job: programs/interpose.cpp leads a rank's connections through it."""

import os
import select
import socket
import struct
import threading


class Proxy:
    """`change(connection, to_server, bytes)`: what passes on instead, a list of pieces; None: the connection is reset.
    It may sleep, as a slow network does."""

    def __init__(self, change):
        self.change, self.connections, self.bytes = change, 0, 0
        self.control = listener()
        self.port = self.control.getsockname()[1]
        self.over = False
        self.threads = [threading.Thread(target=self.answer, daemon=True)]
        self.threads[0].start()

    def answer(self):
        """Opens a port for each connection that a rank is about to make."""
        while not self.over:
            if not select.select([self.control], [], [], 0.1)[0]:
                continue
            try:
                asker = self.control.accept()[0]
            except OSError:  # close()
                return
            with asker:
                wanted = asker.recv(2, socket.MSG_WAITALL)
                if len(wanted) < 2:
                    continue
                own = listener()
                self.run(self.serve, own, struct.unpack("!H", wanted)[0])
                asker.sendall(struct.pack("!H", own.getsockname()[1]))

    def run(self, function, *arguments):
        self.threads.append(threading.Thread(target=function, args=arguments, daemon=True))
        self.threads[-1].start()

    def serve(self, own, port):
        own.settimeout(2)
        try:
            client = own.accept()[0]
        except OSError:
            return
        finally:
            own.close()
        self.join(client, port)

    def hold(self, held, port):
        """Whoever comes to this listener goes on to a port, as long as this program lives."""
        held.settimeout(0.1)
        while not self.over:
            try:
                client = held.accept()[0]
            except OSError:
                continue
            self.join(client, port)

    def join(self, client, port):
        number, self.connections = self.connections, self.connections + 1
        try:
            server = socket.create_connection(("127.0.0.1", port), 2)
        except OSError:
            client.close()
            return
        for end in (client, server):
            end.settimeout(None)
            end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.run(self.carry, number, True, client, server)
        self.run(self.carry, number, False, server, client)

    def carry(self, number, to_server, source, target):
        try:
            while not self.over:
                if not select.select([source], [], [], 0.1)[0]:
                    continue
                data = source.recv(1 << 16)
                pieces = self.change(number, to_server, data) if data else [b""]
                self.bytes += len(data)
                if pieces is None:
                    for end in (source, target):
                        end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                        end.close()
                    return
                if not data:
                    target.shutdown(socket.SHUT_WR)
                    return
                for piece in pieces:
                    target.sendall(piece)
        except (OSError, ValueError):  # the other direction has ended it
            for end in (source, target):
                try:
                    end.shutdown(socket.SHUT_RDWR)
                except OSError:
                    pass

    def close(self):
        self.over = True
        self.control.close()


def listener(port=0, host="127.0.0.1"):
    made = socket.socket()
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    made.bind((host, port))
    made.listen(64)
    return made


def free_port():
    with listener() as made:
        return made.getsockname()[1]


def listening_ports(pids):
    """TCP ports on which these processes listen."""
    inodes = set()
    for pid in pids:
        inodes |= sockets_of(pid)
    ports = []
    with open("/proc/net/tcp") as table:
        for row in table.readlines()[1:]:
            words = row.split()
            if words[3] == "0A" and words[9] in inodes:
                ports.append(int(words[1].split(":")[1], 16))
    return ports


def sockets_of(pid):
    found = set()
    try:
        for name in os.listdir(f"/proc/{pid}/fd"):
            link = os.readlink(f"/proc/{pid}/fd/{name}")
            if link.startswith("socket:["):
                found.add(link[8:-1])
    except OSError:
        pass
    return found

